package schedule

import (
	"fmt"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/robfig/cron/v3"

	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/internal/job/strict"
)

// Expression is when something happens, by the clock of a zone or by a distance.
type Expression struct {
	text  string
	every time.Duration // of @every; 0: the fields below

	minute, hour, day, month, weekday uint64 // a bit for each value that matches
	// bothDays reports whether a date has to match day and weekday. Else one of them is enough.
	bothDays bool
	// rolling reports whether the hour has * or a step: the clock's hours are followed as they pass, twice when one
	// comes twice.
	rolling bool
}

func (e Expression) String() string { return e.text }

// Fault is an expression that cannot be read, or that no moment matches.
type Fault struct {
	Text   string // the expression
	Offset int    // of the first byte that is wrong
	Cause  string
	Cure   string
}

func (f *Fault) Error() string {
	return fmt.Sprintf("schedule %q, character %d: %s", f.Text, utf8.RuneCountInString(f.Text[:f.Offset])+1, f.Cause)
}

// longest is how many bytes an expression may have.
const longest = 200

// anExpression lists the forms of a schedule, for refusals.
const anExpression = `write five fields of cron ("0 2 * * *"), @hourly, @daily, @weekly, @monthly, @yearly, or @every 6h`

// Parse reads an expression: five fields of cron, a word for some of them, or @every and a duration of at least a
// second. The error is a *Fault.
func Parse(text string) (Expression, error) {
	fail := func(offset int, cause, cure string) (Expression, error) {
		return Expression{}, &Fault{Text: text, Offset: offset, Cause: cause, Cure: cure}
	}
	parts := split(text)
	switch {
	case len(text) > longest:
		return fail(len(strings.ToValidUTF8(text[:longest], "")), fmt.Sprintf("more than %d characters", longest),
			anExpression)
	case len(parts) == 0:
		return fail(0, "the expression is empty", anExpression)
	case strings.Contains(parts[0].text, "="):
		return fail(parts[0].offset, "a time zone in the expression",
			"take "+parts[0].text+" out, and write the zone in batch.zone")
	case strings.HasPrefix(parts[0].text, "@"):
		return parseWord(text, parts)
	case len(parts) != 5:
		at := parts[min(len(parts), 6)-1].offset
		if len(parts) < 5 {
			at = len(strings.TrimRightFunc(text, unicode.IsSpace))
		}
		return fail(at, fmt.Sprintf("%d fields, not five", len(parts)),
			"write minute, hour, day of month, month and day of week; there are no seconds")
	}
	return parseFields(text, parts)
}

// part is a piece of an expression.
type part struct {
	text   string
	offset int
}

// split are the parts of a text between white space.
func split(text string) []part {
	var out []part
	begin := -1
	for i, r := range text + " " {
		switch space := unicode.IsSpace(r); {
		case !space && begin < 0:
			begin = i
		case space && begin >= 0:
			out = append(out, part{text[begin:i], begin})
			begin = -1
		}
	}
	return out
}

// words are short for five fields.
func words() map[string]string {
	return map[string]string{
		"@yearly": "0 0 1 1 *", "@annually": "0 0 1 1 *", "@monthly": "0 0 1 * *", "@weekly": "0 0 * * 0",
		"@daily": "0 0 * * *", "@midnight": "0 0 * * *", "@hourly": "0 * * * *",
	}
}

// parseWord reads an expression that begins with @.
func parseWord(text string, parts []part) (Expression, error) {
	fail := func(p part, cause, cure string) (Expression, error) {
		return Expression{}, &Fault{Text: text, Offset: p.offset, Cause: cause, Cure: cure}
	}
	fields, known := words()[parts[0].text]
	switch {
	case known && len(parts) == 1:
		return parseFields(text, split(fields))
	case known:
		return fail(parts[1], fmt.Sprintf("%q behind %s", parts[1].text, parts[0].text), "write "+parts[0].text+" alone")
	case parts[0].text != "@every":
		return fail(parts[0], fmt.Sprintf("unknown word %q", parts[0].text), anExpression)
	case len(parts) != 2:
		return fail(parts[min(2, len(parts)-1)], "@every takes one duration", "write one, such as @every 6h")
	}
	d, err := job.ParseDuration(parts[1].text)
	if err != nil {
		return fail(parts[1], causeOf(err), "write a number and a unit: @every 30m, @every 6h, @every 7d")
	}
	if d < time.Second {
		return fail(parts[1], fmt.Sprintf("@every %s is too often", parts[1].text),
			"write a second or more: @every 30m, @every 6h, @every 7d")
	}
	return Expression{text: text, every: d}, nil
}

func causeOf(err error) string {
	cause, _ := strict.Explain(err)
	return cause
}

// field is one of the five.
type field struct {
	name string
	cure string
}

// The fields in their order.
const (
	minuteField = iota
	hourField
	dayField
	monthField
	weekdayField
)

func fields() [5]field {
	return [5]field{
		{"minute", "write 0 to 59, * or */5; 0,30 and 10-20 join several"},
		{"hour", "write 0 to 23, * or */6; 8,20 and 8-18 join several"},
		{"day of the month", "write 1 to 31, * or */2; 1,15 and 1-7 join several"},
		{"month", "write 1 to 12, JAN to DEC, or *; 1,7 and 1-6 join several"},
		{"day of the week", "write 0 to 6, SUN to SAT (Sunday is 0), or *; 1-5 and MON,THU join several"},
	}
}

// parseFields reads the five fields.
func parseFields(text string, parts []part) (Expression, error) {
	e := Expression{text: text}
	for i, to := range []*uint64{&e.minute, &e.hour, &e.day, &e.month, &e.weekday} {
		offset := parts[i].offset
		for item := range strings.SplitSeq(parts[i].text, ",") {
			values, ok := parseItem(item, i)
			if !ok {
				f := fields()[i]
				return Expression{}, &Fault{
					Text: text, Offset: offset, Cause: fmt.Sprintf("%q is no %s", item, f.name),
					Cure: f.cure,
				}
			}
			*to |= values
			offset += len(item) + 1
		}
	}
	// As crontab(5): a field that begins with * leaves the choice of days to the other one.
	e.bothDays = wild(parts[dayField].text) || wild(parts[weekdayField].text)
	e.rolling = strings.ContainsAny(parts[hourField].text, "*?/")
	if _, comes := e.after(0); !comes {
		return Expression{}, &Fault{
			Text: text, Offset: parts[dayField].offset, Cause: "no year has such a day: the schedule would never begin a run",
			Cure: "change the day of the month, the month or the day of the week",
		}
	}
	return e, nil
}

func wild(field string) bool { return strings.HasPrefix(field, "*") || strings.HasPrefix(field, "?") }

// parseItem reads one item of a field's list: *, */2, 5, 5/2, 1-5 or 1-5/2, with names of months and days.
func parseItem(item string, of int) (values uint64, ok bool) {
	strange := func(r rune) bool {
		return (r < '0' || r > '9') && (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && !strings.ContainsRune("*?/-", r)
	}
	if item == "" || strings.ContainsFunc(item, strange) || wild(item) && len(item) > 1 && item[1] != '/' {
		return 0, false
	}
	all := [5]string{"*", "*", "*", "*", "*"}
	all[of] = item
	read, err := cron.NewParser(cron.Minute | cron.Hour | cron.Dom | cron.Month | cron.Dow).Parse(strings.Join(all[:],
		" "))
	spec, calendar := read.(*cron.SpecSchedule)
	if err != nil || !calendar {
		return 0, false
	}
	const star = 1 << 63 // the library's mark of *
	values = [5]uint64{spec.Minute, spec.Hour, spec.Dom, spec.Month, spec.Dow}[of] &^ star
	return values, values != 0
}
