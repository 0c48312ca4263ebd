package format

import (
	"strings"
	"testing"

	"github.com/kappactl/kappactl/internal/job"
)

func TestConversions(t *testing.T) {
	table := []struct{ typ, value, want string }{
		{"smallint", `32767`, `32767`},
		{"smallint", `32768`, OutOfRange},
		{"smallint", `-32768`, `-32768`},
		{"integer", `-2147483648`, `-2147483648`},
		{"integer", `2147483648`, OutOfRange},
		{"bigint", `9007199254740993`, `9007199254740993`}, // D04
		{"bigint", `9223372036854775807`, `9223372036854775807`},
		{"bigint", `-9223372036854775808`, `-9223372036854775808`},
		{"bigint", `9223372036854775808`, OutOfRange},
		{"bigint", `-9223372036854775809`, OutOfRange},
		{"bigint", `18446744073709551615`, OutOfRange}, // D04
		{"bigint", `18446744073709551616`, OutOfRange},
		{"bigint", `1e400`, OutOfRange},
		{"bigint", `1e99999999999999999999`, OutOfRange},
		{"bigint", `0e99999999999999999999`, `0`},
		{"bigint", `1.0`, `1`},
		{"bigint", `1e3`, `1000`},
		{"bigint", `1200e-2`, `12`},
		{"bigint", `-0`, `0`},
		{"bigint", `-0.0`, `0`},
		{"bigint", `1.5`, WrongType},
		{"bigint", `1e-99999999999999999999`, WrongType},
		{"bigint", `"1"`, WrongType},
		{"bigint", `true`, WrongType},
		{"bigint", `null`, `null`},
		{"numeric(20,0)", `18446744073709551615`, `"18446744073709551615"`}, // D04
		{"numeric(10,2)", `12.34`, `"12.34"`},
		{"numeric(10,2)", `12.340`, `"12.34"`},
		{"numeric(10,2)", `12.345`, OutOfRange},
		{"numeric(10,2)", `-0.01`, `"-0.01"`},
		{"numeric(10,2)", `1e-2`, `"0.01"`},
		{"numeric(10,2)", `99999999.99`, `"99999999.99"`},
		{"numeric(10,2)", `100000000`, OutOfRange},
		{"numeric(38,0)", `99999999999999999999999999999999999999`, `"99999999999999999999999999999999999999"`},
		{"numeric(38,0)", `-99999999999999999999999999999999999999`, `"-99999999999999999999999999999999999999"`},
		{"numeric(38,0)", `100000000000000000000000000000000000000`, OutOfRange},
		{"numeric(38,38)", `0.00000000000000000000000000000000000001`, `"1e-38"`},
		{"numeric(10,2)", `"12.34"`, WrongType},
		{"double precision", `0.1`, `0.1`},
		{"double precision", `1e308`, `1e+308`},
		{"double precision", `1e400`, OutOfRange}, // D06
		{"double precision", `1e-400`, `0`},
		{"double precision", `NaN`, NotJSON}, // D06
		{"double precision", `"NaN"`, `"NaN"`},
		{"double precision", `"Infinity"`, `"+Inf"`},
		{"double precision", `"-Infinity"`, `"-Inf"`},
		{"double precision", `"\u004eaN"`, `"NaN"`},
		{"double precision", `"nan"`, WrongType},
		{"double precision", `"+Infinity"`, WrongType},
		{"double precision", `"inf"`, WrongType},
		{"double precision", `"1.5"`, WrongType},
		{"double precision", `""`, WrongType},
		{"real", `"NaN"`, `"NaN"`},
		{"real", `"-Infinity"`, `"-Inf"`},
		{"numeric(10,2)", `"NaN"`, WrongType},
		{"bigint", `"NaN"`, WrongType},
		{"double precision", `Infinity`, NotJSON},
		{"real", `0.5`, `0.5`},
		{"real", `1e39`, OutOfRange},
		{"boolean", `true`, `true`},
		{"boolean", `false`, `false`},
		{"boolean", `0`, WrongType},
		{"boolean", `"true"`, WrongType},
		{"text", `"plain"`, `"plain"`},
		{"text", `""`, `""`},
		{"text", `"a\tb\"\\\/\b\f\n\r\u00e9\ud83d\ude00"`, `"a\tb\"\\/\u0008\u000c\n\ré😀"`},
		{"text", `"x\u0000y"`, NUL}, // D01
		{"text", `"\ud800"`, InvalidUTF8},
		{"text", `"\ud800\u0041"`, InvalidUTF8},
		{"text", `"\udc00"`, InvalidUTF8},
		{"text", "\"a\xffb\"", InvalidUTF8}, // D03
		{"text", "\"a\x00b\"", NotJSON},
		{"text", `5`, WrongType},
		{"text", `{}`, WrongType},
		{"varchar(3)", `"äöü"`, `"äöü"`},
		{"varchar(3)", `"abcd"`, OutOfRange}, // D13
		{"date", `"2024-02-29"`, `"2024-02-29"`},
		{"date", `"2023-02-29"`, BadValue},
		{"date", `"0001-01-01"`, `"0001-01-01"`},
		{"date", `"0000-01-01"`, BadValue},
		{"date", `"2024-02-29T00:00:00Z"`, BadValue},
		{"date", `20240229`, WrongType},
		{"time", `"23:59:59.999999"`, `"23:59:59.999999"`},
		{"time", `"10:05"`, `"10:05:00"`},
		{"time", `"24:00:00"`, BadValue},
		{"time", `"23:59:60"`, BadValue},
		{"time", `"10:05:00Z"`, BadValue},
		{"timestamptz", `"2026-01-01T10:00:00Z"`, `"2026-01-01T10:00:00Z"`},
		{"timestamptz", `"2026-01-01 10:00:00"`, `"2026-01-01T10:00:00Z"`},
		{"timestamptz", `"2026-01-01T10:00:00+05:30"`, `"2026-01-01T04:30:00Z"`},
		{"timestamptz", `"2026-01-01T10:00:00-0800"`, `"2026-01-01T18:00:00Z"`},
		{"timestamptz", `"2026-01-01T10:00:00-08"`, `"2026-01-01T18:00:00Z"`},
		{"timestamptz", `"2026-01-01t10:00:00z"`, `"2026-01-01T10:00:00Z"`},
		{"timestamptz", `"2026-01-01"`, `"2026-01-01T00:00:00Z"`},
		{"timestamptz", `"2026-01-01T10:00"`, `"2026-01-01T10:00:00Z"`},
		{"timestamptz", `"2016-12-31T23:59:60Z"`, `"2017-01-01T00:00:00Z"`},
		{"timestamptz", `"2026-01-01T10:59:59.9999999Z"`, `"2026-01-01T10:59:59.999999Z"`},
		{"timestamptz", `"1969-12-31T23:59:59.9999999Z"`, `"1969-12-31T23:59:59.999999Z"`},
		{"timestamptz", `"\u0032026-01-01"`, `"2026-01-01T00:00:00Z"`},
		{"timestamptz", `"0001-01-01T00:00:00+01:00"`, OutOfRange},
		{"timestamptz", `"9999-12-31T23:59:59-01:00"`, OutOfRange},
		{"timestamptz", `"2026-01-01T10:00:00 Z"`, BadValue},
		{"timestamptz", `"2026-13-01T10:00:00Z"`, BadValue},
		{"timestamptz", `"2026-01-01T10:00:61Z"`, BadValue},
		{"timestamptz", `"2026-01-01T10:00:00.Z"`, BadValue},
		{"timestamptz", `"yesterday"`, BadValue},
		{"timestamptz", `1700000000`, WrongType}, // D16: no unit, no guess
		{"timestamp", `"2026-01-01T10:00:00"`, `"2026-01-01T10:00:00"`},
		{"timestamp", `"2026-01-01T10:00:00+02:00"`, `"2026-01-01T08:00:00"`},
		{"uuid", `"a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11"`, `"oO68mZwLTvi7bWu5vTgKEQ=="`},
		{"uuid", `"A0EEBC999C0B4EF8BB6D6BB9BD380A11"`, `"oO68mZwLTvi7bWu5vTgKEQ=="`},
		{"uuid", `"a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a1"`, BadValue},
		{"uuid", `"g0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11"`, BadValue},
		{"uuid", `"a0eebc999-c0b-4ef8-bb6d-6bb9bd380a11"`, BadValue},
		{"bytea", `"aGk="`, `"aGk="`},
		{"bytea", `""`, `""`},
		{"bytea", `"aGk"`, BadValue},
		{"bytea", `"a+_="`, BadValue},
		{"jsonb", `{"a": [1, "x\"]\\"]}`, `"{\"a\": [1, \"x\\\"]\\\\\"]}"`},
		{"jsonb", `"text"`, `"\"text\""`},
		{"jsonb", `1e400`, `"1e400"`},
		{"jsonb", `[1e131072]`, OutOfRange},
		{"jsonb", `1e-16384`, OutOfRange},
		{"jsonb", `{"a":"x\u0000"}`, NUL},
		{"jsonb", `{"x\u0000":1}`, NUL},
		{"jsonb", `["\ud800"]`, InvalidUTF8},
		{"json", `true`, `"true"`},
		{"jsonb", `null`, `null`},
	}
	for _, c := range table {
		t.Run(c.typ+" "+strings.ToValidUTF8(c.value, "?"), func(t *testing.T) {
			if got := decode(t, job.Column{Type: c.typ}, c.value); got != c.want {
				t.Errorf("%s as %s: got %s, want %s", c.value, c.typ, got, c.want)
			}
		})
	}
}

// D16: the unit decides what an epoch number means, and a wrong one is refused where it shows.
func TestEpochNumbers(t *testing.T) {
	table := []struct{ unit, value, want string }{
		{"s", `1700000000`, `"2023-11-14T22:13:20Z"`},
		{"s", `1700000000.1234567`, `"2023-11-14T22:13:20.123456Z"`},
		{"s", `-0.0000001`, `"1969-12-31T23:59:59.999999Z"`},
		{"s", `1.7e9`, `"2023-11-14T22:13:20Z"`},
		{"s", `0`, `"1970-01-01T00:00:00Z"`},
		{"s", `1700000000000`, OutOfRange},
		{"ms", `1700000000000`, `"2023-11-14T22:13:20Z"`},
		{"ms", `1700000000000000`, OutOfRange},
		{"us", `1700000000000001`, `"2023-11-14T22:13:20.000001Z"`},
		{"us", `1e300`, OutOfRange},
		{"ns", `1700000000000001999`, `"2023-11-14T22:13:20.000001Z"`},
		{"ns", `-1`, `"1969-12-31T23:59:59.999999Z"`},
		{"ns", `-1000`, `"1969-12-31T23:59:59.999999Z"`},
		{"ns", `999`, `"1970-01-01T00:00:00Z"`},
		{"ns", `1.7e18`, `"2023-11-14T22:13:20Z"`},
		{"ns", `9e21`, OutOfRange},
		{"ns", `-62135596800000000000`, `"0001-01-01T00:00:00Z"`},
		{"ms", `"1700000000000"`, WrongType},
		{"ms", `"2023-11-14T22:13:20Z"`, WrongType},
	}
	for _, c := range table {
		t.Run(c.unit+" "+c.value, func(t *testing.T) {
			if got := decode(t, job.Column{Type: "timestamptz", Unit: c.unit}, c.value); got != c.want {
				t.Errorf("%s %s: got %s, want %s", c.value, c.unit, got, c.want)
			}
		})
	}
}
