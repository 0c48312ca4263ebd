package format

// Times are computed without package time: a record has one or two, and they take most of the time of decoding it.

const (
	microsPerSecond = 1_000_000
	microsPerDay    = 86_400 * microsPerSecond

	// The years 0001 to 9999: a time outside has the wrong unit.
	firstDay    = -719_162 // 0001-01-01 in days since 1970
	lastDay     = 2_932_896
	firstMicros = firstDay * microsPerDay
	endMicros   = (lastDay + 1) * microsPerDay
)

// daysBefore returns the number of days before each month in a common year.
func daysBefore(month int) int {
	n := (367*month - 362) / 12 // in a year whose February has 30 days
	if month > 2 {
		n -= 2
	}
	return n
}

func leap(year int) bool { return year%4 == 0 && (year%100 != 0 || year%400 == 0) }

func monthLength(year, month int) int {
	switch {
	case month != 2:
		return 30 + (month+month>>3)&1
	case leap(year):
		return 29
	}
	return 28
}

// days returns the days since 1970-01-01 in the proleptic Gregorian calendar.
func days(year, month, day int) int {
	y := year - 1
	n := 365*y + y/4 - y/100 + y/400 + daysBefore(month) + day - 1
	if month > 2 && leap(year) {
		n++
	}
	return n + firstDay
}

// two parses two digits; -1 if they are not digits.
func two(b []byte) int {
	d, e := b[0]-'0', b[1]-'0'
	if d > 9 || e > 9 {
		return -1
	}
	return int(d)*10 + int(e)
}

// date parses YYYY-MM-DD at the start of b as days since 1970.
func date(b []byte) (int, bool) {
	if len(b) < 10 || b[4] != '-' || b[7] != '-' {
		return 0, false
	}
	century, year, month, day := two(b), two(b[2:]), two(b[5:]), two(b[8:])
	if century < 0 || year < 0 || month < 1 || month > 12 || day < 1 {
		return 0, false
	}
	year += 100 * century
	if year < 1 || day > monthLength(year, month) {
		return 0, false
	}
	return days(year, month, day), true
}

// clock parses HH:MM, HH:MM:SS or HH:MM:SS.fff… at the start of b as microseconds, and returns its length. It drops
// digits after the sixth of the fraction. Second 60 of a leap second becomes the start of the next minute.
func clock(b []byte) (micros int64, n int, ok bool) {
	if len(b) < 5 || b[2] != ':' {
		return 0, 0, false
	}
	hour, minute := two(b), two(b[3:])
	if hour < 0 || hour > 23 || minute < 0 || minute > 59 {
		return 0, 0, false
	}
	seconds := int64(hour*3600 + minute*60)
	if len(b) < 8 || b[5] != ':' {
		return seconds * microsPerSecond, 5, true
	}
	second := two(b[6:])
	if second < 0 || second > 60 {
		return 0, 0, false
	}
	micros = (seconds + int64(second)) * microsPerSecond
	if len(b) == 8 || b[8] != '.' {
		return micros, 8, true
	}
	unit := int64(microsPerSecond / 10)
	n = 9
	for ; n < len(b) && b[n]-'0' <= 9; n++ {
		micros += int64(b[n]-'0') * unit
		unit /= 10
	}
	return micros, n, n > 9
}

// zone parses Z, ±HH, ±HHMM or ±HH:MM, which must be all of b, as microseconds east of UTC. An empty zone is UTC.
func zone(b []byte) (int64, bool) {
	if len(b) == 0 || len(b) == 1 && b[0]|0x20 == 'z' {
		return 0, true
	}
	if len(b) < 3 || b[0] != '+' && b[0] != '-' {
		return 0, false
	}
	hour, minute := two(b[1:]), 0
	switch {
	case len(b) == 3:
	case len(b) == 5:
		minute = two(b[3:])
	case len(b) == 6 && b[3] == ':':
		minute = two(b[4:])
	default:
		return 0, false
	}
	if hour < 0 || hour > 15 || minute < 0 || minute > 59 {
		return 0, false
	}
	offset := int64(hour*60+minute) * 60 * microsPerSecond
	if b[0] == '-' {
		offset = -offset
	}
	return offset, true
}

// instant parses a date, or a date and a time separated by T or a space, with or without a zone, as microseconds since
// 1970 UTC.
func instant(b []byte) (int64, bool) {
	day, ok := date(b)
	if !ok {
		return 0, false
	}
	return instantOn(day, b)
}

// instantOn is instant on a day that is known.
func instantOn(day int, b []byte) (int64, bool) {
	micros := int64(day) * microsPerDay
	if len(b) == 10 {
		return micros, true
	}
	if b[10]|0x20 != 't' && b[10] != ' ' {
		return 0, false
	}
	c, n, ok := clock(b[11:])
	if !ok {
		return 0, false
	}
	offset, ok := zone(b[11+n:])
	return micros + c - offset, ok
}

// inRange reports whether a time lies in the years 0001 to 9999.
func inRange(micros int64) bool { return micros >= firstMicros && micros < endMicros }
