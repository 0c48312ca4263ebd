package schedule

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"
)

func TestExpressionsThatCannotBeReadAreRefusedAtTheirPlace(t *testing.T) {
	cases := map[string]struct {
		text   string
		at     int
		reason string
	}{
		"nothing":                      {"", 1, "empty"},
		"white space":                  {" \t ", 1, "empty"},
		"a zone alone":                 {"TZ=UTC", 1, "time zone"},
		"an empty zone":                {"TZ=", 1, "time zone"},
		"a zone in front":              {"TZ=UTC 0 2 * * *", 1, "time zone"},
		"cron's zone in front":         {"CRON_TZ=Asia/Tokyo 0 2 * * *", 1, "time zone"},
		"a zone in front of a word":    {"TZ=UTC @daily", 1, "time zone"},
		"six fields":                   {"0 30 2 * * *", 12, "6 fields"},
		"seven fields":                 {"0 30 2 * * * 2026", 12, "7 fields"},
		"four fields":                  {"0 2 * *", 8, "4 fields"},
		"one field":                    {"*", 2, "1 fields"},
		"30 February":                  {"0 0 30 2 *", 5, "no year has such a day"},
		"31 of months of 30 days":      {"0 0 31 4,6,9,11 *", 5, "no year has such a day"},
		"30 February with any weekday": {"0 0 30 FEB */2", 5, "no year has such a day"},
		"Sunday as 7":                  {"0 0 * * 7", 9, `"7" is no day of the week`},
		"a minute too large":           {"60 * * * *", 1, `"60" is no minute`},
		"an hour too large":            {"0 24 * * *", 3, `"24" is no hour`},
		"day 0":                        {"0 0 0 * *", 5, `"0" is no day of the month`},
		"month 13":                     {"0 0 1 13 *", 7, `"13" is no month`},
		"the wrong item of a list":     {"0,15,61 * * * *", 6, `"61" is no minute`},
		"an empty item":                {"0,,15 * * * *", 3, `"" is no minute`},
		"a comma at the end":           {"0, * * * *", 3, `"" is no minute`},
		"only a comma":                 {", * * * *", 1, `"" is no minute`},
		"a range backwards":            {"0 18-8 * * *", 3, `"18-8" is no hour`},
		"a range from *":               {"0 *-8 * * *", 3, `"*-8" is no hour`},
		"a step of zero":               {"*/0 * * * *", 1, `"*/0" is no minute`},
		"a huge step":                  {"1/99999999999999999999 * * * *", 1, "is no minute"},
		"two steps":                    {"*/5/5 * * * *", 1, "is no minute"},
		"a sign":                       {"+5 * * * *", 1, `"+5" is no minute`},
		"quartz's last day":            {"0 0 L * *", 5, `"L" is no day of the month`},
		"an unknown name":              {"0 0 * JANUARY *", 7, `"JANUARY" is no month`},
		"an unknown word":              {"@reboot", 1, `unknown word "@reboot"`},
		"a word in capitals":           {"@Daily", 1, `unknown word "@Daily"`},
		"a word and more":              {"@daily 5", 8, `"5" behind @daily`},
		"every without a duration":     {"@every", 1, "one duration"},
		"every with two":               {"@every 1h 30m", 11, "one duration"},
		"every 0s":                     {"@every 0s", 8, "too often"},
		"every half second":            {"@every 500ms", 8, "too often"},
		"every back in time":           {"@every -1h", 8, "not a duration"},
		"every something":              {"@every day", 8, "not a duration"},
		"a book":                       {strings.Repeat("*", 201), 201, "200 characters"},
		"letters that are no ASCII":    {"０ 2 * * *", 1, "is no minute"},
		"behind letters of two bytes":  {"\u00a0\u00a00 30 2 * * *", 14, "6 fields"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			_, err := Parse(c.text)
			var f *Fault
			if !errors.As(err, &f) {
				t.Fatalf("Parse(%q): %v", c.text, err)
			}
			if want := fmt.Sprintf("character %d:", c.at); !strings.Contains(err.Error(), want) || !strings.Contains(f.Cause, c.reason) {
				t.Errorf("Parse(%q): %v\nwant %s … %s", c.text, err, want, c.reason)
			}
			if f.Cure == "" {
				t.Error("nothing to do about it")
			}
		})
	}
}

func TestAZoneIsNamedAndNeverTheMachines(t *testing.T) {
	for _, zone := range []string{"Local", "Mars/Olympus", "../etc/passwd", "+02:00"} {
		if _, err := NewMoments("@daily", zone); err == nil {
			t.Errorf("zone %q is taken", zone)
		}
	}
	for _, zone := range []string{"", "UTC"} {
		m, err := NewMoments("@daily", zone)
		if err != nil || m.Zone() != time.UTC {
			t.Errorf("zone %q: %v (%v)", zone, m.Zone(), err)
		}
	}
}

// Whatever the text, Parse ends without a panic, and what it takes has a next moment behind any other.
func FuzzParse(f *testing.F) {
	for _, seed := range []string{
		"", "TZ=", "TZ=UTC", "CRON_TZ=UTC * * * * *", "@every 1h", "@every 0s", "@daily", "0 0 30 2 *", "*/5 0-12/3 1,15 JAN-DEC MON-FRI",
		"0 0 29 2 *", "? ? ? ? ?", "0 0 29 2 */6", "59 23 31 12 6", "1/61 * * * *",
	} {
		f.Add(seed, int64(1_700_000_000))
	}
	f.Fuzz(func(t *testing.T, text string, at int64) {
		m, err := NewMoments(text, "America/New_York")
		if err != nil {
			var fault *Fault
			if !errors.As(err, &fault) || fault.Offset < 0 || fault.Offset > len(text) {
				t.Fatalf("%q: %#v", text, err)
			}
			return
		}
		after := time.Unix(at%4_000_000_000, 0)
		next := m.Next(after)
		if !next.After(after) {
			t.Fatalf("%q: %s comes after %s", text, next, after)
		}
		if last := m.Last(after, next, 2); len(last) != 1 || !last[0].Equal(next) {
			t.Fatalf("%q: from %s to %s are %v", text, after, next, last)
		}
	})
}
