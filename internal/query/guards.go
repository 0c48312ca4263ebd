package query

import "strings"

// The reasons for which Land rejects a row.
const (
	KeyTooLong = "key_too_long" // the key exceeds MaxKeyBytes
	NullKey    = "null_key"     // a column of serve.key is NULL
	NullOrder  = "null_order"   // the column of serve.order_by is NULL

	QueryError   = "query_error"   // the query fails over the record alone
	TooExpensive = "too_expensive" // the record exceeds the limit of memory, rows or time for one record
)

// Guarded returns which guard of Land raised an error, and its message.
func Guarded(err error) (reason, detail string, ok bool) {
	if err == nil {
		return "", "", false
	}
	for _, reason := range []string{KeyTooLong, NullKey, NullOrder, TooExpensive} {
		if _, detail, found := strings.Cut(err.Error(), reason+": "); found {
			return reason, detail, true
		}
	}
	return "", "", false
}
