package format

import (
	"fmt"
	"slices"
)

// The reasons of a Reject. They are stored with dead letters and never change their meaning.
const (
	NoValue     = "no_value"     // a tombstone: the record has no value
	NotJSON     = "not_json"     // the value is not RFC 8259 JSON, or something follows it
	NotCSV      = "not_csv"      // the value is not one row of CSV with a field for each column
	WrongType   = "wrong_type"   // the column does not accept this JSON type
	BadValue    = "bad_value"    // a string that is not a date, a UUID, base64, …
	OutOfRange  = "out_of_range" // beyond the range of the column's type, or more digits than it keeps
	NUL         = "nul"          // a NUL character, which PostgreSQL cannot store
	InvalidUTF8 = "invalid_utf8" // bytes that are not UTF-8, or half of a surrogate pair
)

// Reject is why a record cannot be processed: a stable reason, the column if one column's value is the cause, and a
// detail for people that contains at most the first bytes of the value.
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

// Retypable reports whether the column could have another type that accepts the value.
func (r *Reject) Retypable() bool {
	return r.Column != "" && slices.Contains([]string{WrongType, BadValue, OutOfRange}, r.Reason)
}

func reject(reason, detail string, args ...any) *Reject {
	return &Reject{Reason: reason, Detail: fmt.Sprintf(detail, args...)}
}

// excerpt returns the part of a value that a detail shows.
func excerpt(b []byte) string {
	const most = 40
	if len(b) > most {
		return fmt.Sprintf("%q…", b[:most])
	}
	return fmt.Sprintf("%q", b)
}
