package main

import (
	"encoding/xml"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func sample() *result {
	m := measure{Records: 10_000_000, Bytes: 1_670_000_000, Replay: 4, Built: 4.5, Served: 5, CPU: 6, Peak: 170 << 20, Tail: 0.8, Planned: 4.2, Steps: map[string]float64{"build fill": 0.4}}
	r := &result{CPUs: 2, Workers: 2, Partitions: 4, Codec: "none", Commit: "abc"}
	limit := m
	limit.Served, limit.Planned = 2.5, 0
	r.add(limitName+" (franz-go, 2 clients)", limit)
	r.add("kappactl deploy, 2 workers", m)
	r.Keys = []scale{{1000, m}, {10_000_000, m}}
	r.Live = []following{{Partitions: 4, Agents: 1, Rate: 20_000, Seconds: 60, P50: 0.15, P99: 0.3}}
	return r
}

func TestOnlyWhatWasMeasuredIsReplaced(t *testing.T) {
	path := filepath.Join(t.TempDir(), "page.md")
	text := "# Page\n\n" + opening("replay") + "old\n" + closing("replay") + "\nmiddle\n" + opening("flip") + "kept\n" + closing("flip") + "\nend\n"
	write(t, path, text)
	for range 2 { // and again: the same
		if err := sample().publish([]string{path}); err != nil {
			t.Fatal(err)
		}
	}
	got := read(t, path)
	for _, want := range []string{"# Page\n", "| kappactl deploy, 2 workers |", "| 0.50 |", "\nmiddle\n", "kept\n", "\nend\n", "(images/bench-replay.svg)", "kappactl deploy, 2 workers 4.2 s where it took 4.4 s", "at abc, on 2 cores"} {
		if !strings.Contains(got, want) {
			t.Errorf("no %q in:\n%s", want, got)
		}
	}
	if strings.Contains(got, "old") || strings.Count(got, opening("replay")) != 1 {
		t.Errorf("the section was not replaced:\n%s", got)
	}
	if entries, err := os.ReadDir(filepath.Dir(path)); err != nil || len(entries) != 2 {
		t.Errorf("beside the document: %v, %v; want images only", entries, err)
	}
}

func TestADocumentWithABrokenSectionStaysAsItWas(t *testing.T) {
	path := filepath.Join(t.TempDir(), "page.md")
	text := opening("keys") + "old\n" + closing("keys") + "\n" + opening("live") + "no end\n"
	write(t, path, text)
	if err := sample().publish([]string{path}); err == nil || !strings.Contains(err.Error(), "section live has no end") {
		t.Errorf("got %v", err)
	}
	if got := read(t, path); got != text {
		t.Errorf("the document was changed:\n%s", got)
	}
}

func TestTheDocumentsHaveEverySectionOnce(t *testing.T) {
	for path, names := range map[string][]string{"../docs/performance.md": {"replay", "keys", "growth", "live", "flip", "matrix"}, "../README.md": {"short"}} {
		text := read(t, path)
		for _, name := range names {
			if _, err := replaceSection(text, name, ""); err != nil || strings.Count(text, opening(name)) != 1 {
				t.Errorf("%s: section %s: %v", path, name, err)
			}
		}
	}
}

func TestPlotsAreWellFormed(t *testing.T) {
	for _, s := range sample().sections() {
		if s.plot == "" {
			continue
		}
		in := xml.NewDecoder(strings.NewReader(s.plot))
		texts := 0
		for {
			token, err := in.Token()
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				t.Fatalf("%s: %v\n%s", s.name, err, s.plot)
			}
			if e, ok := token.(xml.StartElement); ok && e.Name.Local == "text" {
				texts++
			}
		}
		if strings.Contains(s.plot, "NaN") || strings.Contains(s.plot, "Inf") || texts < 3 {
			t.Errorf("%s: %d texts:\n%s", s.name, texts, s.plot)
		}
	}
}

func read(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}
