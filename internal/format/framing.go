package format

import (
	"bytes"
	"encoding/binary"
	"fmt"

	"github.com/kappactl/kappactl/internal/job"
)

// byteOrderMark is U+FEFF in UTF-8. Some producers write it before a text.
const byteOrderMark = "\ufeff"

// withoutMark returns a text without a leading byte order mark.
func withoutMark(b []byte) []byte { return bytes.TrimPrefix(b, []byte(byteOrderMark)) }

// framed adds to a rejection of a value that is not JSON or CSV what the value starts with, if that is known. The
// reason is unchanged.
func framed(b []byte, r *Reject) *Reject {
	if r == nil {
		return nil
	}
	found := framing(b)
	if found == "" || r.Reason != NotJSON && r.Reason != NotCSV && r.Reason != InvalidUTF8 {
		return r
	}
	return &Reject{Reason: r.Reason, Column: r.Column, Detail: found}
}

// framing describes known bytes before or around the expected text; empty if there are none.
func framing(b []byte) string {
	starts := func(magic string) bool { return bytes.HasPrefix(b, []byte(magic)) }
	switch {
	case len(b) > 5 && b[0] == 0 && (b[5] == '{' || b[5] == '['):
		return registryHeader(b) + ", JSON follows; " +
			"fix: let the producer write JSON without the registry's serializer, or use format raw with a bytea column"
	case len(b) >= 5 && b[0] == 0:
		return registryHeader(b) + ": it is Avro or Protobuf; " +
			"fix: let the producer write JSON, or convert the topic"
	case starts("\xff\xfe"), starts("\xfe\xff"):
		return "the value begins with a byte order mark of UTF-16; fix: let the producer write UTF-8"
	case starts("\x1f\x8b"):
		return "the value is compressed with gzip" + leaveToKafka
	case starts("\x28\xb5\x2f\xfd"):
		return "the value is compressed with zstd" + leaveToKafka
	}
	return ""
}

const leaveToKafka = "; fix: let the producer write plain text and leave compression to Kafka (compression.type)"

// registryHeader names the schema registry header at the start of b and its schema id.
func registryHeader(b []byte) string {
	id := binary.BigEndian.Uint32(b[1:5])
	return fmt.Sprintf("the value begins with a schema registry header (0x00 and schema id %d)", id)
}

// fixOfWhole returns how to change a job whose records are JSON values other than objects. text is the value.
func fixOfWhole(kind byte, text []byte) string {
	switch {
	case kind == '[':
		return `use format raw with a column of type jsonb, v, and unnest(json_extract(v, '$[*]')) in the query`
	case kind == '"' && holdsJSON(text):
		return `the string holds JSON: use format raw with a column of type jsonb, v, and json(v->>'$') in the query`
	}
	return "use format raw with a column of type jsonb"
}

// holdsJSON reports whether a JSON string seems to contain a JSON object or array. text still has its escapes.
func holdsJSON(text []byte) bool {
	text = bytes.TrimLeft(text, " ")
	return len(text) > 0 && (text[0] == '{' || text[0] == '[')
}

// fixOfStray returns how to change the job if a value on the way to a column's place cannot contain that place.
func fixOfStray(kind byte, text []byte, path []job.Step) string {
	if kind == '"' && holdsJSON(text) {
		return "the string holds JSON: declare " + job.PathText(path) + " as a column of type text " +
			"and extract its parts in the query (json_extract_string)"
	}
	return "declare " + job.PathText(path) + " as a column of type jsonb and extract its parts in the query"
}
