package format

import "fmt"

// The reasons of a Reject. They are stored with dead letters and never change their meaning.
const (
	NoValue     = "no_value"     // a tombstone: the record has no value at all
	NotJSON     = "not_json"     // the value is not RFC 8259 JSON, or something follows it
	NotCSV      = "not_csv"      // the value is not one row of CSV with a field for each column
	WrongType   = "wrong_type"   // the JSON type is not the one that the column takes
	BadValue    = "bad_value"    // a string that is not a date, a UUID, base64, …
	OutOfRange  = "out_of_range" // more than the column's type holds, or more digits than it keeps
	NUL         = "nul"          // a NUL character, which PostgreSQL cannot store
	InvalidUTF8 = "invalid_utf8" // bytes that are not UTF-8, or half of a surrogate pair
)

// Reject is why a record cannot be processed: a stable reason, the column when it is one column's fault, and a detail for
// people that holds no more than the first bytes of the value.
type Reject struct {
	Reason string
	Column string
	Detail string
}

func (r *Reject) Error() string {
	if r.Column == "" {
		return r.Reason + ": " + r.Detail
	}
	return r.Reason + ": column " + r.Column + ": " + r.Detail
}

func reject(reason, detail string, args ...any) *Reject {
	return &Reject{Reason: reason, Detail: fmt.Sprintf(detail, args...)}
}

// excerpt is what a detail shows of a value.
func excerpt(b []byte) string {
	const most = 40
	if len(b) > most {
		return fmt.Sprintf("%q…", b[:most])
	}
	return fmt.Sprintf("%q", b)
}
