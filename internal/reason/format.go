package reason

import (
	"encoding/json"
	"fmt"
	"strings"
	"text/template"
	"time"

	"github.com/dustin/go-humanize"
)

// Count is a count with a comma before each three digits.
func Count(n int64) string { return humanize.Comma(n) }

// Plural is a count with its noun: 1 partition, 2 partitions.
func Plural(n int64, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return Count(n) + " " + many
}

// Duration is a duration to the second, or to the millisecond below one: 24h, 1m30s, 250ms.
func Duration(d time.Duration) string {
	if d < time.Second {
		return d.Round(time.Millisecond).String()
	}
	text := d.Round(time.Second).String()
	if d >= time.Minute { // 24h0m0s is 24h
		if short, ok := strings.CutSuffix(text, "m0s"); ok {
			text = short + "m"
		}
		if short, ok := strings.CutSuffix(text, "h0m"); ok {
			text = short + "h"
		}
	}
	return text
}

// Time is a moment in RFC 3339, in UTC.
func Time(t time.Time) string { return t.UTC().Format(time.RFC3339) }

// Percent is a share with as many digits as tell it from its neighbours: 3.01%, 0.004%.
func Percent(share float64) string { return fmt.Sprintf("%.3g%%", 100*share) }

// seconds is a duration as an argument.
func seconds(d time.Duration) float64 { return d.Seconds() }

// funcs are what templates may call. Each fails on a missing argument, which the tests of every code find.
func funcs() template.FuncMap {
	return template.FuncMap{
		"text": text,
		"count": func(v any) (string, error) {
			n, err := number(v)
			return Count(int64(n)), err
		},
		"plural": func(v any, one, many string) (string, error) {
			n, err := number(v)
			return Plural(int64(n), one, many), err
		},
		"duration": func(v any) (string, error) {
			n, err := number(v)
			return Duration(time.Duration(n * float64(time.Second))), err
		},
		"percent": func(v any) (string, error) {
			n, err := number(v)
			return Percent(n), err
		},
		"list": func(v any) (string, error) {
			items, err := list(v)
			return strings.Join(items, ", "), err
		},
		"lines": func(v any) (string, error) {
			items, err := list(v)
			if len(items) == 0 {
				return "", err
			}
			return "\n  " + strings.Join(items, "\n  "), err
		},
	}
}

func number(v any) (float64, error) {
	switch n := v.(type) {
	case int:
		return float64(n), nil
	case int64:
		return float64(n), nil
	case float64:
		return n, nil
	case json.Number:
		return n.Float64()
	}
	return 0, fmt.Errorf("%v is no number", v)
}

func text(v any) (string, error) {
	switch t := v.(type) {
	case string:
		return t, nil
	case nil:
		return "", fmt.Errorf("an argument is missing")
	case int, int64:
		return fmt.Sprint(t), nil
	case float64: // a whole number that JSON carried
		return fmt.Sprintf("%.0f", t), nil
	}
	return "", fmt.Errorf("%T has no text", v)
}

// list is the texts of a list, also of one that JSON carried.
func list(v any) ([]string, error) {
	switch items := v.(type) {
	case nil:
		return nil, nil
	case []string:
		return items, nil
	case []any:
		out := make([]string, len(items))
		for i, item := range items {
			t, err := text(item)
			if err != nil {
				return nil, err
			}
			out[i] = t
		}
		return out, nil
	}
	return nil, fmt.Errorf("%T is no list", v)
}

// resolve replaces a nested reason, or a list of them, by its text.
func resolve(v any) any {
	if r, ok := asReason(v); ok {
		return r.Text()
	}
	switch items := v.(type) {
	case []Reason:
		return Texts(items)
	case []any:
		out := make([]any, len(items))
		for i, item := range items {
			out[i] = resolve(item)
		}
		return out
	}
	return v
}

// asReason is a nested reason, also one that JSON carried.
func asReason(v any) (Reason, bool) {
	switch r := v.(type) {
	case Reason:
		return r, true
	case map[string]any:
		code, ok := r["code"].(string)
		args, _ := r["args"].(map[string]any)
		return Reason{Code: Code(code), Args: args}, ok
	}
	return Reason{}, false
}
