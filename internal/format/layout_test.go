package format

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"

	"github.com/kappactl/kappactl/internal/job"
)

// layoutPlaces are places at the top, in objects, in an array, and of an object with a place inside.
func layoutPlaces(t testing.TB) [][]job.Step {
	t.Helper()
	var out [][]job.Step
	for _, path := range []string{"$.a", "$.b", "$.o.x", "$.o.p.y", "$.l[1]", "$.w", "$.w.z"} {
		steps, err := job.Column{Name: "c", Path: path}.Steps()
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, steps)
	}
	return out
}

// agree reads records with one scanner, which learns their layouts, and each with a new one, which knows none.
func agree(t *testing.T, places [][]job.Step, records ...string) *scanner {
	t.Helper()
	s := newScanner(places)
	for _, record := range records {
		fresh := newScanner(places)
		want, got := fresh.scan([]byte(record)), s.read([]byte(record))
		if !reflect.DeepEqual(got, want) {
			t.Fatalf("%q in %q: %v, want %v", record, records, got, want)
		}
		if want == nil && (!reflect.DeepEqual(s.spans, fresh.spans) || len(s.strays) != len(fresh.strays)) {
			t.Fatalf("%q in %q:\n%v, want\n%v", record, records, s.spans, fresh.spans)
		}
	}
	return s
}

func layoutRecords() []string {
	return []string{
		`{"a":1,"b":"x"}`, `{"a":-0.5e3,"b":"\u00e9\\"}`, `{"a":"ä","b":null}`, `{"a":"ä","b":"x\`, `{"a":1,"b":"` + "\xff" + `"}`, `{"a":1,"b":"x"}  `,
		`{"a":1,"b":"x"}}`, `{"a":1,"b":"x"`, `{"a":01,"b":"x"}`, `{"a":1,"b":"x` + "\n" + `"}`, `{"a":1}`, `{"a":1,"b":}`, `{"a":1,"b":"`, `{"a":`,
		`{"a":{"deep":[1,2]},"b":[true]}`, `{"a":{"deep":[1,2},"b":[true]}`, `{"b":"x","a":1}`, `{"a":1,"a":2,"b":3}`, `{"c":"none"}`, `{}`, ``, `7`,
		`{"o":{"x":1,"p":{"y":2}}}`, `{"o":{"x":1,"p":{"y":2}},"o":{"x":3}}`, `{"o":{"x":1,"p":null}}`, `{"o":{"x":1,"p":{}}}`, `{"o":"text"}`, `{"o":{"x":1,"p":7}}`,
		`{"o":{"x":9,"p":{"y":8}},"a":"` + strings.Repeat("long ", 20) + `"}`, `{"o":null,"a":1}`, `{"l":[1,2,3]}`, `{"l":[1]}`, `{"w":{"z":1,"q":2}}`,
		`{"w":{"z":1},"w":5}`, `{"w":[1]}`, `{"a":1, "b":"x"}`, `{"ä":1,"b":2}`, `{"` + strings.Repeat("n", 200) + `":1}`, `{"a":` + strings.Repeat("[", 600) + `}`,
	}
}

// Whatever records a scanner has read before, it reads one as a new scanner does.
func TestLayoutsAgreeWithScan(t *testing.T) {
	t.Parallel()
	places := layoutPlaces(t)
	all := layoutRecords()
	for _, first := range all {
		for _, second := range all {
			agree(t, places, first, second, first, second)
		}
	}
	random := rand.New(rand.NewPCG(1, 2))
	for range 2000 {
		var records []string
		for range 20 {
			r := []byte(all[random.IntN(len(all))])
			if len(r) > 0 && random.IntN(3) == 0 {
				r[random.IntN(len(r))] = `"{}[]:,\x0 e`[random.IntN(12)]
			}
			records = append(records, string(r))
		}
		agree(t, places, records...)
	}
}

func FuzzLayoutsAgreeWithScan(f *testing.F) {
	for i, r := range layoutRecords() {
		f.Add(r, layoutRecords()[(i*7+3)%len(layoutRecords())])
	}
	f.Fuzz(func(t *testing.T, first, second string) {
		agree(t, layoutPlaces(t), first, second, first, second)
	})
}

// Records of a few layouts are read by them, and records of ever new ones take bounded memory.
func TestLayoutsAreBounded(t *testing.T) {
	t.Parallel()
	places := layoutPlaces(t)
	s := agree(t, places, `{"a":1,"b":"x"}`, `{"a":2}`, `{"o":{"x":1,"p":{"y":"z"}},"c":[1,2]}`)
	for _, record := range []string{`{"a":77,"b":"\n"}`, `{"a":null}`, `{"o":{"x":"1","p":{"y":2.5}},"c":{"any":"thing"}}`} {
		if !s.quick([]byte(record)) {
			t.Errorf("%s is not read by its layout", record)
		}
	}
	for i := range 5000 {
		if r := s.read(fmt.Appendf(nil, `{"id-%d":1,"a":%d}`, i, i)); r != nil {
			t.Fatal(r)
		}
		if s.layouts.values > maxValues || len(s.layouts.first.next) > maxForks {
			t.Fatalf("%d values, %d first ones", s.layouts.values, len(s.layouts.first.next))
		}
	}
	if s.layouts.pause == 0 {
		t.Error("layouts are still tried although no record has one")
	}
	s.layouts.pause = 0
	if agree(t, places, `{"a":1}`); s.read([]byte(`{"a":1}`)) != nil || !s.quick([]byte(`{"a":2}`)) {
		t.Error("layouts are not learned again after a pause")
	}
}
