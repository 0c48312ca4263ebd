package render

import (
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/dustin/go-humanize"
)

// None is printed for a value that is unknown or absent.
const None = "-"

// Count formats a number with separators: 3,000,000.
func Count(n int64) string { return humanize.Comma(n) }

// CountOf formats a count; nil is unknown.
func CountOf(n *int64) string {
	if n == nil {
		return None
	}
	return Count(*n)
}

// Plural formats a count with its noun: "1 record", "2 records".
func Plural(n int64, singular string) string {
	if n == 1 {
		return "1 " + singular
	}
	return Count(n) + " " + singular + "s"
}

// Bytes formats a size in powers of 1000, as job files do: 1.6 GB.
func Bytes(n int64) string { return humanize.Bytes(uint64(max(0, n))) }

// Rate formats records per second: 950/s, 12.3k/s, 2.8M/s. nil, NaN and infinities become None.
func Rate(perSecond *float64) string {
	if perSecond == nil || math.IsNaN(*perSecond) || math.IsInf(*perSecond, 0) {
		return None
	}
	switch v := *perSecond; {
	case v >= 999_950:
		return trimZero(fmt.Sprintf("%.1f", v/1e6)) + "M/s"
	case v >= 999.5:
		return trimZero(fmt.Sprintf("%.1f", v/1e3)) + "k/s"
	default:
		return fmt.Sprintf("%.0f/s", v)
	}
}

func trimZero(s string) string { return strings.TrimSuffix(s, ".0") }

// Duration formats the two largest units: 250ms, 1.5s, 42s, 3m20s, 5h10m, 2d4h.
func Duration(d time.Duration) string {
	switch {
	case d < 0:
		return "-" + Duration(-d)
	case d == 0:
		return "0s"
	case d < 999500*time.Microsecond:
		return fmt.Sprintf("%dms", max(1, d.Round(time.Millisecond).Milliseconds()))
	case d < 9950*time.Millisecond:
		return trimZero(fmt.Sprintf("%.1f", d.Seconds())) + "s"
	}
	s := int64(d.Round(time.Second) / time.Second)
	switch {
	case s < 60:
		return fmt.Sprintf("%ds", s)
	case s < 3600:
		return two(s/60, "m", s%60, "s")
	case s < 86400:
		return two(s/3600, "h", s%3600/60, "m")
	}
	return two(s/86400, "d", s%86400/3600, "h")
}

func two(a int64, unit string, b int64, smaller string) string {
	if b == 0 {
		return fmt.Sprintf("%d%s", a, unit)
	}
	return fmt.Sprintf("%d%s%d%s", a, unit, b, smaller)
}

// Seconds formats a number of seconds as a Duration; nil is unknown.
func Seconds(s *float64) string {
	if s == nil || math.IsNaN(*s) || math.Abs(*s) > math.MaxInt64/float64(time.Second) {
		return None
	}
	return Duration(time.Duration(*s * float64(time.Second)))
}

// Time formats a time for programs: RFC 3339 in UTC.
func Time(t *time.Time) string {
	if t == nil || t.IsZero() {
		return None
	}
	return t.UTC().Format(time.RFC3339)
}

// Or returns s, or None if s is empty.
func Or(s string) string {
	if s == "" {
		return None
	}
	return s
}
