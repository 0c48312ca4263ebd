package query

import "strings"

// The reasons for which Land itself refuses a row.
const (
	KeyTooLong = "key_too_long" // the key holds more than MaxKeyBytes
	NullKey    = "null_key"     // a column of serve.key is NULL
	NullOrder  = "null_order"   // the column of serve.order_by is NULL
)

// Guarded says which guard of Land raised an error, with its words.
func Guarded(err error) (reason, detail string, ok bool) {
	if err == nil {
		return "", "", false
	}
	for _, reason := range []string{KeyTooLong, NullKey, NullOrder} {
		if _, detail, found := strings.Cut(err.Error(), reason+": "); found {
			return reason, detail, true
		}
	}
	return "", "", false
}
