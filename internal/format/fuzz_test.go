package format

import (
	"bytes"
	"encoding/json"
	"math/big"
	"strconv"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/kappactl/kappactl/internal/job"
)

// The scanner and encoding/json agree on what JSON is; beyond it the scanner wants UTF-8 and bounds the depth.
func FuzzScanAgreesWithEncodingJSON(f *testing.F) {
	for _, s := range []string{
		`{"v":1}`, `{"v":"\u00e9\ud800","w":[1,{"a":null}]}`, `{"v":1e5,}`, ` {} `, `{"v":-0.0e-1}`, "{\"v\":\"\xff\"}", `[`, `{"a":"b\"}`, `{"v":tru}`,
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, value []byte) {
		s := newScanner([][]job.Step{{{Name: "v", Index: -1}}})
		r := s.scan(value)
		valid := json.Valid(value)
		switch {
		case r == nil && !valid:
			t.Errorf("taken: %q", value)
		case r != nil && r.Reason == InvalidUTF8 && utf8.Valid(value):
			t.Errorf("refused as not UTF-8: %q", value)
		case r != nil && r.Reason == NotJSON && valid && utf8.Valid(value) && bytes.Count(value, []byte("["))+bytes.Count(value, []byte("{")) < maxDepth:
			t.Errorf("refused: %q: %v", value, r)
		}
		if r != nil {
			return
		}
		var m map[string]json.RawMessage
		if err := json.Unmarshal(value, &m); err != nil {
			t.Fatal(err)
		}
		// A name with half a surrogate pair becomes U+FFFD in one and nothing in the other.
		want, ok := m["v"]
		if got := s.spans[0]; ok != (got.kind != 0) {
			t.Errorf("field v in %q: found %v, want %v", value, got.kind != 0, ok)
		} else if ok && got.kind != '"' && !bytes.Equal(value[got.from:got.to], want) {
			t.Errorf("field v in %q: %q, want %q", value, value[got.from:got.to], want)
		} else if ok && got.kind == '"' && !bytes.Equal(value[got.from-1:got.to+1], want) {
			t.Errorf("field v in %q: %q, want %q", value, value[got.from-1:got.to+1], want)
		}
	})
}

// No value whatever breaks the batch.
func FuzzAppendKeepsBatchesWhole(f *testing.F) {
	f.Add([]byte(`{"a":"x","b":1.5,"c":"2026-01-01T00:00:00Z","d":{"x":"\u0000"},"e":true,"f":"aGk="}`))
	f.Add([]byte(`{"c":"2026-01-01T00:00:00.999999999+15:59","b":1e-5,"d":[1e9999999]}`))
	src := job.Source{Format: "json", Columns: []job.Column{
		{Name: "a", Type: "text"},
		{Name: "b", Type: "numeric(20,5)"},
		{Name: "c", Type: "timestamp with time zone"},
		{Name: "d", Type: "jsonb"},
		{Name: "e", Type: "boolean"},
		{Name: "f", Type: "bytea"},
		{Name: "g", Type: "uuid"},
		{Name: "h", Type: "real"},
	}}
	f.Fuzz(func(t *testing.T, value []byte) {
		d, err := New(src, []string{"a", "b", "c", "d", "e", "f", "g", "h"})
		if err != nil {
			t.Fatal(err)
		}
		whole := []byte(`{"a":"z","b":2,"c":"2026-01-01","d":1,"e":false,"f":"","h":1}`)
		want := 2
		for _, v := range [][]byte{whole, value, whole} {
			if r := d.Append(&kgo.Record{Value: v}); r == nil && bytes.Equal(v, value) && !bytes.Equal(v, whole) {
				want++
			}
		}
		if bytes.Equal(value, whole) {
			want = 3
		}
		batch := d.Take()
		defer batch.Release()
		text, err := batch.MarshalJSON()
		if err != nil {
			t.Fatal(err)
		}
		var all []json.RawMessage
		if err := json.Unmarshal(text, &all); err != nil || len(all) != want {
			t.Errorf("%d rows, want %d: %v", len(all), want, err)
		}
	})
}

// Integers and decimals agree with exact arithmetic.
func FuzzNumbersAreExact(f *testing.F) {
	for _, s := range []string{"0", "-1", "1.5", "1e3", "123456789012345678901234567890", "9223372036854775808", "0.001e3", "100e-2"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		v, err := strconv.ParseFloat(s, 64)
		if !json.Valid([]byte(s)) || len(s) > 60 || err != nil || s[0] != '-' && (s[0] < '0' || s[0] > '9') || v != 0 && (v > 1e200 || v < -1e200) {
			t.Skip()
		}
		want, ok := new(big.Rat).SetString(s)
		if !ok {
			t.Skip()
		}
		got, err := integer([]byte(s))
		if exact := want.IsInt() && want.Num().IsInt64(); exact != (err == nil) || exact && got != want.Num().Int64() {
			t.Errorf("integer(%s) = %d, %v", s, got, err)
		}
		hi, lo, err := decimal([]byte(s), 38, 6)
		shifted := new(big.Rat).Mul(want, big.NewRat(1_000_000, 1))
		limit := new(big.Int).Exp(big.NewInt(10), big.NewInt(38), nil)
		fits := shifted.IsInt() && new(big.Int).Abs(shifted.Num()).Cmp(limit) < 0
		if fits != (err == nil) {
			t.Fatalf("decimal(%s): %v, want fits %v", s, err, fits)
		}
		if fits {
			n := new(big.Int).Add(new(big.Int).Lsh(big.NewInt(int64(hi)), 64), new(big.Int).SetUint64(lo))
			if n.Cmp(shifted.Num()) != 0 {
				t.Errorf("decimal(%s) = %s, want %s", s, n, shifted.Num())
			}
		}
	})
}

// Whatever instant takes of package time's own layouts, they agree.
func FuzzInstantAgreesWithPackageTime(f *testing.F) {
	for _, s := range []string{"2026-01-01T10:00:00Z", "1900-02-28T23:59:59.123456789+05:30", "2000-02-29T00:00:00-15:00", "9999-12-31T23:59:59Z"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		want, err := time.Parse(time.RFC3339Nano, s)
		if err != nil || want.Year() < 1 || want.Year() > 9999 || bytes.ContainsRune([]byte(s), ',') || len(s) < 20 || s[4] != '-' {
			t.Skip()
		}
		if _, offset := want.Zone(); offset > 15*3600+59*60 || offset < -15*3600-59*60 {
			t.Skip()
		}
		got, ok := instant([]byte(s))
		if !ok {
			t.Skip() // stricter, as with one-digit hours
		}
		floor := want.Truncate(time.Microsecond).UnixMicro()
		if got != floor {
			t.Errorf("%s: %d, want %d", s, got, floor)
		}
	})
}
