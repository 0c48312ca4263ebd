package mergecheck

import (
	"encoding/base64"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/kappactl/kappactl/internal/job"
)

// Generate creates n random records of the declared columns, for a job whose topic has none. It draws values and record
// keys from small sets so that keys repeat, and it includes missing fields, equal times and, with serve.key,
// tombstones.
func Generate(spec *job.Spec, n int, seed uint64) ([]*kgo.Record, error) {
	source := spec.Source
	r := rand.New(rand.NewPCG(seed, 1)) //nolint:gosec // it has to be repeatable
	out := make([]*kgo.Record, n)
	for i := range out {
		fields := map[string]any{}
		for _, c := range source.Columns {
			if r.IntN(20) > 0 {
				fields[c.Name] = value(r, c)
			}
		}
		text, err := encode(source, fields)
		if err != nil {
			return nil, fmt.Errorf("make a record: %w", err)
		}
		out[i] = &kgo.Record{
			Topic: source.Topics[r.IntN(len(source.Topics))], Partition: int32(r.IntN(3)), Offset: int64(i), Value: text, //nolint:gosec // below 3
			Timestamp: firstTime().Add(time.Duration(r.IntN(n)) * time.Second),
			Key:       strconv.AppendInt(nil, int64(r.IntN(50)), 10),
		}
		if len(spec.Serve.Key) > 0 && r.IntN(20) == 0 {
			out[i].Value = nil
		}
	}
	return out, nil
}

func firstTime() time.Time { return time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC) }

// value returns a random value of a declared column as it appears in JSON. The set of values is small.
func value(r *rand.Rand, c job.Column) any {
	n := r.IntN(50)
	at := firstTime().Add(time.Duration(r.IntN(72*60)) * time.Minute)
	base, _, _ := strings.Cut(c.Type, "(")
	switch base {
	case "boolean":
		return n%2 == 0
	case "smallint", "integer", "bigint":
		return (n - 10) * (1 + 799*r.IntN(2)) // 39 * 800 still fits into a smallint
	case "real", "double precision":
		return float64(n-10) / 4
	case "numeric":
		return n % 10
	case "bytea":
		return base64.StdEncoding.EncodeToString([]byte{byte(n)})
	case "date":
		return at.Format(time.DateOnly)
	case "time without time zone":
		return at.Format("15:04:05")
	case "timestamp without time zone", "timestamp with time zone":
		return moment(at, c.Unit, base)
	case "uuid":
		return fmt.Sprintf("00000000-0000-4000-8000-%012d", n%8)
	case "json", "jsonb":
		return map[string]any{"n": n % 4}
	}
	return string(rune('a' + n%6))
}

// moment returns a time in the column's unit.
func moment(at time.Time, unit, typ string) any {
	switch unit {
	case "s":
		return at.Unix()
	case "ms":
		return at.UnixMilli()
	case "us":
		return at.UnixMicro()
	case "ns":
		return at.UnixNano()
	}
	if typ == "timestamp without time zone" {
		return at.Format("2006-01-02T15:04:05")
	}
	return at.Format(time.RFC3339)
}
