package job

import (
	"fmt"
	"math"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/kappactl/kappactl/internal/job/strict"
)

const day = 24 * time.Hour

var dayPart = regexp.MustCompile(`^([0-9]+(?:\.[0-9]+)?)d(.*)$`)

// ParseDuration reads a duration in Go's syntax, optionally preceded by days of 24 hours: 250ms, 5s, 1d12h, 90d. It
// rejects negative durations.
func ParseDuration(text string) (time.Duration, error) {
	wrong := strict.Want(fmt.Sprintf("%q is not a duration", text), "write a number and a unit: 250ms, 5s, 10m, 24h, 7d")
	if text == "0" {
		return 0, nil
	}
	if strings.HasPrefix(text, "-") || strings.HasPrefix(text, "+") {
		return 0, wrong
	}
	var total time.Duration
	rest := text
	if m := dayPart.FindStringSubmatch(text); m != nil {
		days, err := strconv.ParseFloat(m[1], 64)
		if err != nil || days > float64(math.MaxInt64/day) {
			return 0, strict.Want(text+" is too long", "write 36500d or less")
		}
		total, rest = time.Duration(days*float64(day)), m[2]
		if rest == "" {
			return total, nil
		}
	}
	d, err := time.ParseDuration(rest)
	if err != nil || d < 0 || strings.HasPrefix(rest, "+") {
		return 0, wrong
	}
	if total+d < total {
		return 0, strict.Want(text+" is too long", "write 36500d or less")
	}
	return total + d, nil
}

// FormatDuration writes a duration so that ParseDuration reads it back: whole days as 7d, without zero parts at the
// end.
func FormatDuration(d time.Duration) string {
	if d >= day && d%day == 0 {
		return strconv.FormatInt(int64(d/day), 10) + "d"
	}
	text := d.String()
	if strings.HasSuffix(text, "m0s") {
		text = strings.TrimSuffix(text, "0s")
	}
	if strings.HasSuffix(text, "h0m") {
		text = strings.TrimSuffix(text, "0m")
	}
	return text
}

// sizeUnit is a unit of bytes.
type sizeUnit struct {
	name  string
	bytes float64
}

func sizeUnits() []sizeUnit {
	return []sizeUnit{
		{"B", 1},
		{"kB", 1e3},
		{"MB", 1e6},
		{"GB", 1e9},
		{"TB", 1e12},
		{"KiB", 1 << 10},
		{"MiB", 1 << 20},
		{"GiB", 1 << 30},
		{"TiB", 1 << 40},
	}
}

var sizePattern = regexp.MustCompile(`^([0-9]+(?:\.[0-9]+)?) ?([A-Za-z]+)$`)

// ParseSize reads a number of bytes: 500kB and 1GB are powers of 1000, 64MiB is one of 1024.
func ParseSize(text string) (int64, error) {
	m := sizePattern.FindStringSubmatch(text)
	if m == nil {
		return 0, strict.Want(fmt.Sprintf("%q is not a size", text), "write a number and a unit: 500kB, 64MiB, 1GB")
	}
	number, err := strconv.ParseFloat(m[1], 64)
	if err != nil {
		return 0, strict.Want(fmt.Sprintf("%q is not a size", text), "write a number and a unit: 500kB, 64MiB, 1GB")
	}
	var names []string
	for _, u := range sizeUnits() {
		if u.name == m[2] {
			if n := number * u.bytes; n < 1<<62 {
				return int64(n), nil
			}
			return 0, strict.Want(text+" is too large", "write a smaller size")
		}
		names = append(names, u.name)
	}
	return 0, strict.Want(fmt.Sprintf("unknown unit %q", m[2]), strict.Suggest(m[2], names))
}

// ParseRate reads bytes a second: 50MB/s. 0 is no limit.
func ParseRate(text string) (int64, error) {
	if text == "0" {
		return 0, nil
	}
	size, found := strings.CutSuffix(text, "/s")
	if !found {
		return 0, strict.Want(fmt.Sprintf("%q is not a rate", text), "write bytes a second: 50MB/s, or 0 for no limit")
	}
	n, err := ParseSize(strings.TrimSuffix(size, " "))
	switch {
	case err != nil:
		return 0, err
	case n < 1000:
		return 0, strict.Want(text+" is too slow", "write 1kB/s or more, or 0 for no limit")
	}
	return n, nil
}

var percentPattern = regexp.MustCompile(`^([0-9]+(?:\.[0-9]+)?) ?%$`)

// ParsePercentage reads a percentage as a share: 0.1% is 0.001.
func ParsePercentage(text string) (float64, error) {
	m := percentPattern.FindStringSubmatch(text)
	if m == nil && text != "0" {
		return 0, strict.Want(fmt.Sprintf("%q is not a percentage", text), "write a number and %: 0.1%")
	}
	if m == nil {
		return 0, nil
	}
	// 0.1/100 is 0.001 exactly as a literal would be; 0.1*0.01 is not.
	percent, err := strconv.ParseFloat(m[1], 64)
	if err != nil || percent > 100 {
		return 0, strict.Want(text+" is out of range", "write 0% to 100%")
	}
	return percent / 100, nil
}
