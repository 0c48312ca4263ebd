package schedule

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/kappactl/kappactl/internal/job"
)

// clocked is a schedule with a clock of the test: what agents write into the table, by hand.
type clocked struct {
	t       *testing.T
	m       Moments
	policy  Policy
	next    time.Time
	written map[time.Time]State // the ticks, by their key
	under   bool                // a run is under way
	log     []string
}

func newClocked(t *testing.T, expression, zone, since string, p Policy) *clocked {
	t.Helper()
	m := moments(t, expression, zone)
	if p.MissedAfter == 0 {
		p.MissedAfter = 10 * time.Minute
	}
	return &clocked{t: t, m: m, policy: p, next: m.Next(at(t, zone, since)), written: map[time.Time]State{}}
}

// look is one look of an agent at a time of the schedule's zone.
func (c *clocked) look(clock string) {
	c.t.Helper()
	waiting := slices.Contains(slices.Collect(func(yield func(State) bool) {
		for _, s := range c.written {
			if !yield(s) {
				return
			}
		}
	}), Waiting)
	ticks, next := c.m.Due(c.next, at(c.t, c.m.Zone().String(), clock), c.policy, c.under, waiting)
	c.next = next
	for _, tick := range ticks {
		if _, again := c.written[tick.At]; again {
			c.t.Errorf("the tick of %s is written twice", tick.At)
		}
		c.written[tick.At] = tick.State
		text := fmt.Sprintf("%s %s", tick.At.In(c.m.Zone()).Format("02 15:04"), tick.State)
		if tick.Together > 1 {
			text += fmt.Sprintf(" x%d", tick.Together)
		}
		c.log = append(c.log, text)
	}
	c.begin()
}

// begin lets the oldest tick that waits run, unless a run is under way.
func (c *clocked) begin() {
	var oldest *time.Time
	for tick, s := range c.written {
		if s == Waiting && (oldest == nil || tick.Before(*oldest)) {
			oldest = &tick
		}
	}
	if oldest != nil && !c.under {
		c.written[*oldest], c.under = Started, true
		c.log = append(c.log, oldest.In(c.m.Zone()).Format("02 15:04")+" runs")
	}
}

// ends is the end of the run under way.
func (c *clocked) ends() { c.under = false; c.begin() }

func (c *clocked) saw(want ...string) {
	c.t.Helper()
	if !slices.Equal(c.log, want) {
		c.t.Errorf("\n got %s\nwant %s", strings.Join(c.log, " | "), strings.Join(want, " | "))
	}
	c.log = nil
}

var once = Policy{Missed: job.MissedRunOnce, Overlap: job.OverlapSkip}

func TestATickRunsOnceWhoeverLooks(t *testing.T) {
	c := newClocked(t, "0 * * * *", "UTC", "2026-03-01 00:30", once)
	c.look("2026-03-01 00:59")
	c.saw()
	c.look("2026-03-01 01:00")
	c.saw("01 01:00 waiting", "01 01:00 runs")
	c.ends()
	c.look("2026-03-01 01:00")
	c.look("2026-03-01 01:20")
	c.saw()
}

func TestAnOutageOfThreeDays(t *testing.T) {
	for name, c := range map[string]struct {
		expression string
		missed     job.MissedPolicy
		back       string
		want       []string
	}{
		"run_once": {"0 2 * * *", job.MissedRunOnce, "2026-03-04 09:00", []string{"02 02:00 missed x2", "04 02:00 waiting", "04 02:00 runs"}},
		"skip":     {"0 2 * * *", job.MissedSkip, "2026-03-04 09:00", []string{"02 02:00 missed x3"}},
		"all": {"0 2 * * *", job.MissedAll, "2026-03-04 09:00", []string{
			"02 02:00 waiting", "03 02:00 waiting", "04 02:00 waiting", "02 02:00 runs",
		}},
		"back just in time: run_once": {"0 2 * * *", job.MissedRunOnce, "2026-03-04 02:10", []string{"02 02:00 missed x2", "04 02:00 waiting", "04 02:00 runs"}},
		"back just in time: skip":     {"0 2 * * *", job.MissedSkip, "2026-03-04 02:10", []string{"02 02:00 missed x2", "04 02:00 waiting", "04 02:00 runs"}},
		"back just too late: skip":    {"0 2 * * *", job.MissedSkip, "2026-03-04 02:11", []string{"02 02:00 missed x3"}},
	} {
		t.Run(name, func(t *testing.T) {
			s := newClocked(t, c.expression, "UTC", "2026-03-01 12:00", Policy{Missed: c.missed, Overlap: job.OverlapSkip})
			s.look(c.back)
			s.saw(c.want...)
			s.look(c.back)
			s.saw()
		})
	}
}

func TestRunsOfAnOutageFollowOneAnother(t *testing.T) {
	c := newClocked(t, "0 2 * * *", "UTC", "2026-03-01 12:00", Policy{Missed: job.MissedAll, Overlap: job.OverlapSkip})
	c.look("2026-03-04 09:00")
	c.log = nil
	c.ends()
	c.saw("03 02:00 runs")
	c.look("2026-03-05 02:00") // while they do, a new one is left out
	c.saw("05 02:00 skipped")
	c.ends()
	c.ends()
	c.saw("04 02:00 runs")
}

func TestOfAnOutageTheNewestHundredRun(t *testing.T) {
	m := moments(t, "* * * * *", "UTC")
	from := at(t, "UTC", "2026-03-01 00:00")
	ticks, next := m.Due(from, from.Add(72*time.Hour), Policy{Missed: job.MissedAll, MissedAfter: 10 * time.Minute}, true, true)
	if len(ticks) != 101 || ticks[0].State != Missed || ticks[0].Together != 72*60+1-100 || !ticks[0].At.Equal(from) {
		t.Fatalf("%d ticks, the first %+v", len(ticks), ticks[0])
	}
	if newest := ticks[100]; newest.State != Waiting || !newest.At.Equal(from.Add(72*time.Hour)) || !next.Equal(newest.At.Add(time.Minute)) {
		t.Errorf("the newest is %+v, then comes %s", newest, next)
	}
}

func TestAnOutageOfYearsIsCountedForOne(t *testing.T) {
	for _, expression := range []string{"* * * * *", "@every 1m"} {
		m := moments(t, expression, "UTC")
		now := at(t, "UTC", "2026-03-01 00:00")
		ticks, next := m.Due(now.Add(-20*lookBack), now, once, false, false)
		if len(ticks) != 2 || ticks[0].Together != 366*24*60 || !ticks[1].At.Equal(now) || !next.Equal(now.Add(time.Minute)) {
			t.Errorf("%s: %+v, then %s", expression, ticks, next)
		}
	}
}

func TestATickIsMissedAfterHalfTheDistanceAtMost(t *testing.T) {
	p := Policy{Missed: job.MissedSkip, Overlap: job.OverlapSkip}
	c := newClocked(t, "*/10 * * * *", "UTC", "2026-03-01 00:00", p)
	c.look("2026-03-01 00:15")
	c.saw("01 00:10 waiting", "01 00:10 runs")
	c = newClocked(t, "*/10 * * * *", "UTC", "2026-03-01 00:00", p)
	c.look("2026-03-01 00:16")
	c.saw("01 00:10 missed")
}

func TestARunOfTwoHoursOnAnHourlySchedule(t *testing.T) {
	for overlap, want := range map[job.OverlapPolicy][]string{
		job.OverlapSkip:     {"01 01:00 waiting", "01 01:00 runs", "01 02:00 skipped", "01 03:00 waiting", "01 03:00 runs"},
		job.OverlapQueueOne: {"01 01:00 waiting", "01 01:00 runs", "01 02:00 waiting", "01 02:00 runs", "01 03:00 waiting"},
	} {
		c := newClocked(t, "0 * * * *", "UTC", "2026-03-01 00:30", Policy{Missed: job.MissedRunOnce, Overlap: overlap})
		c.look("2026-03-01 01:00")
		c.look("2026-03-01 02:00")
		c.ends() // at 02:59
		c.look("2026-03-01 03:00")
		c.saw(want...)
	}
}

func TestOneTickAtMostWaits(t *testing.T) {
	c := newClocked(t, "0 * * * *", "UTC", "2026-03-01 00:30", Policy{Missed: job.MissedRunOnce, Overlap: job.OverlapQueueOne})
	for _, clock := range []string{"01:00", "02:00", "03:00", "04:00"} {
		c.look("2026-03-01 " + clock)
	}
	c.saw("01 01:00 waiting", "01 01:00 runs", "01 02:00 waiting", "01 03:00 skipped", "01 04:00 skipped")
}

func TestAClockThatStepsBackRepeatsNothing(t *testing.T) {
	c := newClocked(t, "0 * * * *", "UTC", "2026-03-01 00:30", once)
	for _, clock := range []string{"01:00", "02:05", "01:05", "02:00", "02:30", "03:00"} { // an hour forward, and back
		c.look("2026-03-01 " + clock)
		c.ends()
	}
	c.saw("01 01:00 waiting", "01 01:00 runs", "01 02:00 waiting", "01 02:00 runs", "01 03:00 waiting", "01 03:00 runs")
}

func TestAnOutageOverAChangeOfTheClocks(t *testing.T) {
	c := newClocked(t, "30 2 * * *", "America/New_York", "2025-03-08 12:00", once)
	c.look("2025-03-09 03:00")
	c.saw("09 03:00 waiting", "09 03:00 runs")
	c = newClocked(t, "30 1 * * *", "America/New_York", "2025-11-01 12:00", once)
	for range 2 { // the clock's 01:30 comes twice
		c.look("2025-11-02 01:30")
		c.ends()
	}
	c.look("2025-11-02 03:00")
	c.saw("02 01:30 waiting", "02 01:30 runs")
}

func TestAJobIsLateWhenTwoRunsWereDueSinceItsCut(t *testing.T) {
	for name, c := range map[string]struct{ expression, cut, want string }{
		"hourly":                 {"0 * * * *", "2026-03-02 01:00", "2026-03-02 03:00"},
		"just after the hour":    {"0 * * * *", "2026-03-02 01:01", "2026-03-02 03:00"},
		"weekdays over a Sunday": {"0 2 * * 1-5", "2026-03-06 02:00", "2026-03-10 02:00"},
		"every":                  {"@every 6h", "2026-03-02 01:30", "2026-03-02 13:30"},
	} {
		got := moments(t, c.expression, "UTC").LateAt(at(t, "UTC", c.cut)).Format("2006-01-02 15:04")
		if got != c.want {
			t.Errorf("%s: late at %s, not %s", name, got, c.want)
		}
	}
}
