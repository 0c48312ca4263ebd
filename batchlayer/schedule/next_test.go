package schedule

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

func moments(t *testing.T, expression, zone string) Moments {
	t.Helper()
	m, err := NewMoments(expression, zone)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func at(t *testing.T, zone, text string) time.Time {
	t.Helper()
	in, err := time.LoadLocation(zone)
	if err != nil {
		t.Fatal(err)
	}
	moment, err := time.ParseInLocation("2006-01-02 15:04", text, in)
	if err != nil {
		t.Fatal(err)
	}
	return moment
}

func TestNextMoments(t *testing.T) {
	const ny, berlin, howe, apia, cairo = "America/New_York", "Europe/Berlin", "Australia/Lord_Howe", "Pacific/Apia", "Africa/Cairo"
	cases := map[string]struct {
		zone, expression, after string
		want                    []string // as the zone's clocks show them
	}{
		"daily, over the missing hour of New York": {
			ny, "30 2 * * *", "2025-03-07 12:00",
			[]string{"2025-03-08 02:30 EST", "2025-03-09 03:00 EDT", "2025-03-10 02:30 EDT"},
		},
		"daily, over the double hour of New York": {
			ny, "30 1 * * *", "2025-11-01 12:00",
			[]string{"2025-11-02 01:30 EDT", "2025-11-03 01:30 EST"},
		},
		"half-hourly keeps its distance in spring": {
			ny, "*/30 * * * *", "2025-03-09 01:00",
			[]string{"2025-03-09 01:30 EST", "2025-03-09 03:00 EDT", "2025-03-09 03:30 EDT"},
		},
		"half-hourly keeps its distance in autumn": {
			ny, "*/30 * * * *", "2025-11-02 00:30",
			[]string{"2025-11-02 01:00 EDT", "2025-11-02 01:30 EDT", "2025-11-02 01:00 EST", "2025-11-02 01:30 EST", "2025-11-02 02:00 EST"},
		},
		"hourly in autumn": {
			berlin, "15 * * * *", "2025-10-26 01:30",
			[]string{"2025-10-26 02:15 CEST", "2025-10-26 02:15 CET", "2025-10-26 03:15 CET"},
		},
		"a step in the hour, over the missing hour": {
			ny, "0 */2 * * *", "2025-03-08 23:00",
			[]string{"2025-03-09 00:00 EST", "2025-03-09 04:00 EDT"},
		},
		"several fixed times in the gap are one run": {
			berlin, "0,30 2,3 * * *", "2025-03-30 01:00",
			[]string{"2025-03-30 03:00 CEST", "2025-03-30 03:30 CEST", "2025-03-31 02:00 CEST"},
		},
		"each minute of a fixed hour comes once": {
			ny, "*/20 1 * * *", "2025-11-02 00:00",
			[]string{"2025-11-02 01:00 EDT", "2025-11-02 01:20 EDT", "2025-11-02 01:40 EDT", "2025-11-03 01:00 EST"},
		},
		"after the first of a double hour comes the next day": {
			ny, "30 1 * * *", "2025-11-02 01:45",
			[]string{"2025-11-03 01:30 EST"},
		},
		"a gap of half an hour": {
			howe, "15 2 * * *", "2025-10-04 12:00",
			[]string{"2025-10-05 02:30 +11", "2025-10-06 02:15 +11"},
		},
		"a double half hour": {
			howe, "45 1 * * *", "2025-04-05 12:00",
			[]string{"2025-04-06 01:45 +11", "2025-04-07 01:45 +1030"},
		},
		"a gap at midnight": {
			cairo, "0 0 * * *", "2024-04-25 12:00",
			[]string{"2024-04-26 01:00 EEST", "2024-04-27 00:00 EEST"},
		},
		"a day that a zone left out": {
			apia, "0 12 * * *", "2011-12-29 00:00",
			[]string{"2011-12-29 12:00 -10", "2011-12-31 00:00 +14", "2011-12-31 12:00 +14"},
		},
		"the last day of a leap year behind the tables of zones": {
			berlin, "0 */12 * * *", "2048-12-30 12:00",
			[]string{"2048-12-31 00:00 CET", "2048-12-31 12:00 CET", "2049-01-01 00:00 CET"},
		},
		"a fixed time on that day": {
			ny, "0 12 * * *", "2040-12-30 12:00",
			[]string{"2040-12-31 12:00 EST", "2041-01-01 12:00 EST"},
		},
		"leap days": {
			"UTC", "0 0 29 2 *", "2095-01-01 00:00",
			[]string{"2096-02-29 00:00 UTC", "2104-02-29 00:00 UTC", "2108-02-29 00:00 UTC"},
		},
		"a leap day that is a Sunday": {
			"UTC", "0 0 29 2 */7", "2026-01-01 00:00",
			[]string{"2032-02-29 00:00 UTC", "2060-02-29 00:00 UTC"},
		},
		"a day of the month or a weekday": {
			"UTC", "0 0 13 * 5", "2026-02-01 00:00",
			[]string{"2026-02-06 00:00 UTC", "2026-02-13 00:00 UTC", "2026-02-20 00:00 UTC", "2026-02-27 00:00 UTC", "2026-03-06 00:00 UTC", "2026-03-13 00:00 UTC"},
		},
		"a step over the days and a weekday: both": {
			"UTC", "0 0 */2 * MON", "2026-06-01 00:00",
			[]string{"2026-06-15 00:00 UTC", "2026-06-29 00:00 UTC", "2026-07-13 00:00 UTC"},
		},
		"the 31st leaves short months out": {
			"UTC", "0 6 31 * *", "2026-01-31 06:00",
			[]string{"2026-03-31 06:00 UTC", "2026-05-31 06:00 UTC"},
		},
		"weekdays": {
			"UTC", "30 7 * * MON-FRI", "2026-12-03 08:00",
			[]string{"2026-12-04 07:30 UTC", "2026-12-07 07:30 UTC"},
		},
		"@weekly": {berlin, "@weekly", "2026-12-01 00:00", []string{"2026-12-06 00:00 CET", "2026-12-13 00:00 CET"}},
		"@yearly": {berlin, "@yearly", "2026-12-01 00:00", []string{"2027-01-01 00:00 CET"}},
		"@every counts real hours": {
			ny, "@every 24h", "2025-03-08 12:00",
			[]string{"2025-03-09 13:00 EDT", "2025-03-10 13:00 EDT"},
		},
		"@every takes days": {"UTC", "@every 1d12h", "2026-01-01 00:00", []string{"2026-01-02 12:00 UTC"}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			m, after := moments(t, c.expression, c.zone), at(t, c.zone, c.after)
			var got []string
			for range c.want {
				after = m.Next(after)
				got = append(got, after.In(m.Zone()).Format("2006-01-02 15:04 MST"))
			}
			if !slices.Equal(got, c.want) {
				t.Errorf("%s in %s:\n got %v\nwant %v", c.expression, c.zone, got, c.want)
			}
		})
	}
}

// The moments are found here minute by minute, by the clock alone.
func TestMomentsAreThoseThatAClockShows(t *testing.T) {
	zones := []string{"America/New_York", "Europe/Berlin", "Australia/Lord_Howe", "America/Sao_Paulo", "Africa/Casablanca", "Asia/Kathmandu"}
	random := rand.New(rand.NewPCG(7, 1))
	pick := func(of ...string) string { return of[random.IntN(len(of))] }
	for range 300 {
		expression := fmt.Sprintf("%s %s %s %s %s", pick("0", "30", "*/20", "15,45", "*"), pick("*", "*/2", "1", "2", "0-3", "1,2,3", "0", "23"),
			pick("*", "*/2", "1-20", "*"), pick("*", "3,10,11"), pick("*", "0", "1-5"))
		m := moments(t, expression, pick(zones...))
		from := changes(m.Zone(), random).Add(-30 * time.Hour)
		to := from.Add(4 * 24 * time.Hour)
		var got []time.Time
		for next := m.Next(from); !next.After(to); next = m.Next(next) {
			got = append(got, next)
		}
		if want := byTheClock(m, from, to); !slices.EqualFunc(got, want, time.Time.Equal) {
			t.Fatalf("%s in %s from %s:\n got %v\nwant %v", expression, m.Zone(), from, got, want)
		}
		if last := m.Last(from, to, 3); !slices.EqualFunc(last, got[max(0, len(got)-3):], time.Time.Equal) {
			t.Fatalf("%s in %s: the last up to %s are %v, not the end of %v", expression, m.Zone(), to, last, got)
		}
	}
}

// changes is a moment at which the clocks of a zone change, or some moment in a zone whose clocks do not.
func changes(zone *time.Location, random *rand.Rand) time.Time {
	t := time.Unix(1_000_000_000+random.Int64N(700_000_000), 0).In(zone)
	if _, end := t.ZoneBounds(); !end.IsZero() {
		return end.Truncate(time.Minute)
	}
	return t.Truncate(time.Minute)
}

func byTheClock(m Moments, from, to time.Time) []time.Time {
	var out []time.Time
	shown := wallOf(m, from.Add(-50*time.Hour)) // the highest wall minute up to now
	for t := from.Add(-50 * time.Hour); !t.After(to); t = t.Add(time.Minute) {
		wall, hit := wallOf(m, t), false
		if m.rolling {
			hit = m.matches(wall)
		} else {
			for w := shown + 60; w <= wall; w += 60 { // more than one where the clocks are put forward
				hit = hit || m.matches(w)
			}
			shown = max(shown, wall)
		}
		if hit && t.After(from) {
			out = append(out, t)
		}
	}
	return out
}

func wallOf(m Moments, t time.Time) int64 {
	_, offset := t.In(m.Zone()).Zone()
	return t.Unix() + int64(offset)
}

func (m Moments) matches(wall int64) bool {
	t := time.Unix(wall, 0).UTC()
	return m.onDay(wall/secondsOfDay) && m.hour>>t.Hour()&1 == 1 && m.minute>>t.Minute()&1 == 1
}

func TestLastMoments(t *testing.T) {
	m := moments(t, "0 2 * * *", "UTC")
	now := at(t, "UTC", "2026-03-05 02:00")
	if got := m.Last(at(t, "UTC", "2026-03-03 02:00"), now, 5); len(got) != 2 || !got[1].Equal(now) {
		t.Errorf("since is not left out, or now is: %v", got)
	}
	if got := m.Last(now, now, 5); len(got) != 0 {
		t.Errorf("%v", got)
	}
	every := moments(t, "@every 90m", "UTC")
	got := every.Last(at(t, "UTC", "2026-03-05 00:00"), at(t, "UTC", "2026-03-05 05:00"), 2)
	if len(got) != 2 || !got[0].Equal(at(t, "UTC", "2026-03-05 03:00")) || !got[1].Equal(at(t, "UTC", "2026-03-05 04:30")) {
		t.Errorf("%v", got)
	}
	yearly := moments(t, "0 0 1 1 *", "UTC")
	if got := yearly.Last(at(t, "UTC", "1990-01-01 00:00"), now, 2); len(got) != 2 || got[0].Year() != 2025 {
		t.Errorf("%v", got)
	}
}

func BenchmarkNext(b *testing.B) {
	for _, expression := range []string{"*/5 * * * *", "0 2 * * *", "0 0 29 2 *"} {
		m, err := NewMoments(expression, "Europe/Berlin")
		if err != nil {
			b.Fatal(err)
		}
		b.Run(expression, func(b *testing.B) {
			t := time.Unix(1_700_000_000, 0)
			for b.Loop() {
				t = m.Next(t)
				if t.Year() > 2100 {
					t = time.Unix(1_700_000_000, 0)
				}
			}
		})
	}
}
