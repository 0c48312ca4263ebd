package schedule

import (
	"fmt"
	"math/bits"
	"slices"
	"time"
	_ "time/tzdata" // zones are the same on every machine, also where none are installed
)

// Moments are those of an expression in a time zone.
type Moments struct {
	Expression
	zone *time.Location
}

// NewMoments reads an expression and the name of a zone; an empty one is UTC. The error is a *Fault when it is about
// the expression.
func NewMoments(expression, zone string) (Moments, error) {
	e, err := Parse(expression)
	if err != nil {
		return Moments{}, err
	}
	if zone == "Local" {
		return Moments{}, fmt.Errorf("unknown time zone %s", zone) // it would be another one on each machine
	}
	at, err := time.LoadLocation(zone)
	if err != nil {
		return Moments{}, err
	}
	return Moments{Expression: e, zone: at}, nil
}

// Zone is the time zone.
func (m Moments) Zone() *time.Location { return m.zone }

// Next is the first moment after another, in UTC. For @every that other one is the moment before it.
//
// Where clocks are put forward, a fixed time that does not exist is the first minute behind the gap. Where they are put
// back, one that comes twice is the first of the two. With * or a step in the hour, each minute that passes is looked
// at as the clock shows it: the distances stay what they are, and a time that comes twice is two moments.
func (m Moments) Next(after time.Time) time.Time {
	if m.every > 0 {
		return after.Add(m.every).UTC()
	}
	if m.rolling {
		return m.nextRolling(after.Unix())
	}
	at := m.highest(after.Unix())
	wall, _ := m.after(at)
	return m.reaches(wall)
}

// Last are the newest moments, at most n, that are after since and not after now; the newest is last. Moments of @every
// count from since.
func (m Moments) Last(since, now time.Time, n int) []time.Time {
	if m.every > 0 {
		return m.lastOfEvery(since, now, n)
	}
	for back := time.Minute; ; back *= 2 {
		from := now.Add(-back)
		if from.Before(since) || back > century {
			from = since
		}
		var found []time.Time
		for t := m.Next(from); !t.After(now); t = m.Next(t) {
			found = append(found, t)
		}
		if len(found) >= n || !from.After(since) {
			return found[max(0, len(found)-n):]
		}
	}
}

const century = 100 * 366 * 24 * time.Hour

func (m Moments) lastOfEvery(since, now time.Time, n int) []time.Time {
	var out []time.Time
	for i := int64(now.Sub(since) / m.every); i > 0 && len(out) < n; i-- {
		out = append(out, since.Add(time.Duration(i)*m.every).UTC())
	}
	slices.Reverse(out)
	return out
}

// A wall time is the local date and time of a zone, counted in seconds as if it were UTC. Offsets of zones are less
// than 26 hours apart.
const (
	secondsOfDay = 24 * 60 * 60
	apart        = 26 * 60 * 60
	cycle        = 400*365 + 97 // days after which the calendar repeats
)

// span returns the zone's offset from UTC at a moment, in seconds, and a later moment up to which the offset does not
// change. last reports that it never changes again.
func (m Moments) span(at int64) (offset, end int64, last bool) {
	t := time.Unix(at, 0).In(m.zone)
	_, ahead := t.Zone()
	_, until := t.ZoneBounds()
	end = until.Unix()
	if end <= at { // on 31 December of leap years behind its tables, the library ends the year a day early
		end = at + 3600
	}
	return int64(ahead), end, until.IsZero()
}

// highest is the largest wall time that clocks have shown up to a moment.
func (m Moments) highest(at int64) int64 {
	var wall int64
	for t := at - apart; ; {
		offset, end, last := m.span(t)
		if last || end > at {
			return max(wall, at+offset)
		}
		wall, t = max(wall, end-1+offset), end
	}
}

// reaches is the first moment at which clocks show a wall time or a later one.
func (m Moments) reaches(wall int64) time.Time {
	for t := wall - apart; ; {
		offset, end, last := m.span(t)
		if at := max(wall-offset, t); last || at < end {
			return time.Unix(at, 0).UTC()
		}
		t = end
	}
}

// nextRolling is the first moment after another whose wall time matches.
func (m Moments) nextRolling(after int64) time.Time {
	for t := after + 1; ; {
		offset, end, last := m.span(t)
		wall, _ := m.after(t - 1 + offset)
		if at := wall - offset; last || at < end {
			return time.Unix(at, 0).UTC()
		}
		t = end
	}
}

// after is the first wall time that matches after another; false: none does.
func (e Expression) after(wall int64) (next int64, comes bool) {
	day := floor(wall, secondsOfDay)
	minute := int(wall-day*secondsOfDay)/60 + 1
	for range cycle + 1 {
		if e.onDay(day) {
			if at, found := e.minuteFrom(minute); found {
				return day*secondsOfDay + int64(at)*60, true
			}
		}
		day, minute = day+1, 0
	}
	return 0, false
}

// onDay reports whether a date matches, given as days since 1970.
func (e Expression) onDay(days int64) bool {
	_, month, day := time.Unix(days*secondsOfDay, 0).UTC().Date()
	if e.month>>month&1 == 0 {
		return false
	}
	ofMonth := e.day>>day&1 == 1
	ofWeek := e.weekday>>((days%7+11)%7)&1 == 1 // 1970 began on a Thursday
	if e.bothDays {
		return ofMonth && ofWeek
	}
	return ofMonth || ofWeek
}

// minuteFrom is the first minute of a day that matches, from one on.
func (e Expression) minuteFrom(from int) (minute int, found bool) {
	least := from % 60
	for hour := from / 60; hour < 24; hour++ {
		if e.hour>>hour&1 == 1 {
			if rest := e.minute >> least; rest != 0 {
				return hour*60 + least + bits.TrailingZeros64(rest), true
			}
		}
		least = 0
	}
	return 0, false
}

// floor divides and rounds down.
func floor(a, b int64) int64 {
	q := a / b
	if a%b < 0 {
		q--
	}
	return q
}
