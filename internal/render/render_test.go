package render

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func table() *Table {
	t := NewTable("version", ">lag records", "reason")
	t.Add(Text("v1"), Text("1,200"), Toned(Good, "ready"))
	t.Add(Text("v12"), Text("7"))
	return t
}

func write(t *testing.T, tab *Table, s Style) string {
	t.Helper()
	var b strings.Builder
	if err := tab.Write(&b, s); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func TestTableIsAlignedForPeople(t *testing.T) {
	want := "VERSION  LAG RECORDS  REASON\nv1             1,200  ready\nv12                7\n"
	if diff := cmp.Diff(want, write(t, table(), Style{People: true})); diff != "" {
		t.Error(diff)
	}
}

func TestTableIsTabSeparatedForScripts(t *testing.T) {
	want := "version\tlag_records\treason\nv1\t1,200\tready\nv12\t7\t\n"
	if diff := cmp.Diff(want, write(t, table(), Style{Color: false})); diff != "" {
		t.Error(diff)
	}
}

func TestColourDoesNotChangeTheLayout(t *testing.T) {
	coloured := write(t, table(), Style{People: true, Color: true})
	if !strings.Contains(coloured, "\x1b[32mready\x1b[0m") {
		t.Errorf("no colour in %q", coloured)
	}
	for _, tone := range []Tone{Good, Dim} {
		coloured = strings.ReplaceAll(coloured, tone.code(), "")
	}
	if diff := cmp.Diff(write(t, table(), Style{People: true}), strings.ReplaceAll(coloured, reset, "")); diff != "" {
		t.Error(diff)
	}
}

func TestCellsStayOnOneLineAndCarryNoEscapes(t *testing.T) {
	tab := NewTable("reason")
	tab.Add(Text("a\tb\nc\x1b[31m\r\n"))
	if got := write(t, tab, Style{}); got != "reason\na b c [31m\n" {
		t.Errorf("got %q", got)
	}
}

func TestLastColumnGoesOnInLinesOfItsOwn(t *testing.T) {
	tab := NewTable("a", "reason")
	tab.Add(Text("x"), Text(strings.Repeat("é", 30)+" nothing is left out of it"))
	tab.Add(Text("y"), Text("short"))
	want := "A  REASON\nx  " + strings.Repeat("é", 27) + "\n   ééé nothing is left out of\n   it\ny  short\n"
	if diff := cmp.Diff(want, write(t, tab, Style{People: true, Width: 30})); diff != "" {
		t.Error(diff)
	}
	if got := write(t, tab, Style{Width: 30}); strings.Count(got, "\n") != 3 {
		t.Errorf("a row for programs is one line: %q", got)
	}
}

// TestAWideColumnInTheMiddleGoesOnToo: the last one alone would be squeezed, and every line still longer than the terminal.
func TestAWideColumnInTheMiddleGoesOnToo(t *testing.T) {
	tab := NewTable("setting", "value", "origin")
	tab.Add(Text("dsn"), Text(strings.Repeat("0123456789", 5)), Text("line 3 of /etc/kappactl.yaml"))
	tab.Add(Text("schema"), Text("kappactl"), Text("default"))
	want := "SETTING  VALUE                       ORIGIN\n" +
		"dsn      01234567890123456789012345  line 3 of\n" +
		"         678901234567890123456789    /etc/kappactl.yaml\n" +
		"schema   kappactl                    default\n"
	if diff := cmp.Diff(want, write(t, tab, Style{People: true, Width: 62})); diff != "" {
		t.Error(diff)
	}
	numbers := NewTable(">"+strings.Repeat("n", 40), "reason")
	numbers.Add(Text("1"), Text(strings.Repeat("word ", 20)))
	for line := range strings.Lines(write(t, numbers, Style{People: true, Width: 30})) {
		if n := len(strings.TrimRight(line, "\n")); n > 62 {
			t.Errorf("numbers stay as wide as they are: %d characters: %q", n, line)
		}
	}
}

func ptr[T any](v T) *T { return &v }

func TestFormats(t *testing.T) {
	for _, c := range []struct{ got, want string }{
		{Duration(0), "0s"},
		{Duration(200 * time.Microsecond), "1ms"},
		{Duration(250 * time.Millisecond), "250ms"},
		{Duration(999600 * time.Microsecond), "1s"},
		{Duration(1500 * time.Millisecond), "1.5s"},
		{Duration(9960 * time.Millisecond), "10s"},
		{Duration(59600 * time.Millisecond), "1m"},
		{Duration(200 * time.Second), "3m20s"},
		{Duration(5*time.Hour + 10*time.Minute), "5h10m"},
		{Duration(52 * time.Hour), "2d4h"},
		{Duration(-2 * time.Second), "-2s"},
		{Seconds(nil), "-"},
		{Seconds(ptr(math.NaN())), "-"},
		{Seconds(ptr(math.Inf(1))), "-"},
		{Seconds(ptr(42.2)), "42s"},
		{Rate(nil), "-"},
		{Rate(ptr(math.NaN())), "-"},
		{Rate(ptr(0.0)), "0/s"},
		{Rate(ptr(12345.0)), "12.3k/s"},
		{Rate(ptr(999.9)), "1k/s"},
		{Rate(ptr(2_800_000.0)), "2.8M/s"},
		{Rate(ptr(999_960.0)), "1M/s"},
		{Count(3000000), "3,000,000"},
		{CountOf(nil), "-"},
		{CountOf(ptr(int64(0))), "0"},
		{Plural(1, "record"), "1 record"},
		{Plural(2000, "record"), "2,000 records"},
		{Bytes(1_600_000_000), "1.6 GB"},
		{Bytes(-1), "0 B"},
		{Or(""), "-"},
		{Time(nil), "-"},
		{Time(ptr(time.Date(2026, 1, 1, 12, 0, 0, 0, time.FixedZone("x", 3600)))), "2026-01-01T11:00:00Z"},
	} {
		if c.got != c.want {
			t.Errorf("got %q, want %q", c.got, c.want)
		}
	}
}

func TestJSONRefusesNaN(t *testing.T) {
	var b strings.Builder
	if err := JSON(&b, math.NaN()); err == nil {
		t.Errorf("printed %q", b.String())
	}
	if err := JSON(&b, map[string]any{"sql": "a < b && c", "x": nil}); err != nil || b.String() != "{\n  \"sql\": \"a < b && c\",\n  \"x\": null\n}\n" {
		t.Errorf("got %q, %v", b.String(), err)
	}
}

func TestATableOfNamesPrintsThemAsTheyAreAndAlignsWideCharacters(t *testing.T) {
	table := NewNamedTable("userId", ">250", "Total $")
	table.Add(Text("日本語"), Text("1"), Text("a"))
	table.Add(Text("e\u0301"), Text("2"), Text("b"))
	var piped, seen strings.Builder
	for out, s := range map[*strings.Builder]Style{&piped: {}, &seen: {People: true}} {
		if err := table.Write(out, s); err != nil {
			t.Fatal(err)
		}
	}
	if head, _, _ := strings.Cut(piped.String(), "\n"); head != "userId\t>250\tTotal $" {
		t.Errorf("in a pipe: %q", head)
	}
	if want := "userId  >250  Total $\n日本語  1     a\ne\u0301       2     b\n"; seen.String() != want {
		t.Errorf("on a terminal:\n%s", seen.String())
	}
}

func TestWideCharactersAreWrappedByTheirCells(t *testing.T) {
	if diff := cmp.Diff([]string{"日本", "語 a"}, Wrap("日本語 a", 5)); diff != "" {
		t.Error(diff)
	}
}
