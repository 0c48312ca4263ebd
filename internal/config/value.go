package config

import (
	"fmt"
	"net"
	pathpkg "path"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/internal/job/strict"
)

// value is one field of Settings as texts and as a key of the settings file.
type value struct {
	key   strict.Value            // reads it from the file
	set   func(text string) error // takes it from a flag, a variable or a default
	text  func() string           // as people see it, without a secret; empty: none
	write func() any              // as the file has it; nil: nothing to write
	path  *string                 // a path, relative to the folder of the file
}

// scalar is a value that is read from text; the text of the zero value is empty.
func scalar[T comparable](to *T, key strict.Value, parse func(string) (T, error), format func(T) string) value {
	shown := func() string {
		var zero T
		if *to == zero {
			return ""
		}
		return format(*to)
	}
	return value{
		key: key, text: shown,
		set: func(given string) error {
			v, err := parse(given)
			if err == nil {
				*to = v
			}
			return err
		},
		write: func() any {
			if s := shown(); s != "" {
				return s
			}
			return nil
		},
	}
}

// stringer is a string type that hides secrets when it is printed.
type stringer interface{ ~string }

func text[T stringer](to *T, kind string, parse func(string) (T, error)) value {
	return scalar(to, strict.Parsed(kind, to, parse), parse, func(v T) string { return fmt.Sprint(v) })
}

// word is a text of any content.
func word(to *string) value {
	v := text(to, "text", asIs)
	v.key = strict.Text(to)
	return v
}

func path(to *string) value {
	v := word(to)
	v.path = to
	return v
}

func oneOf(to *string, words ...string) value {
	v := text(to, "word", func(given string) (string, error) {
		for _, w := range words {
			if w == given {
				return w, nil
			}
		}
		return "", strict.Want(fmt.Sprintf("unknown value %q", given), strict.Suggest(given, words))
	})
	v.key = strict.OneOf(to, words...)
	return v
}

func size(to *int64) value {
	v := scalar(to, strict.Written("size", to, memorySize), memorySize, sizeText)
	v.write = func() any {
		if *to == 0 {
			return nil
		}
		return strconv.FormatInt(*to, 10) + "B"
	}
	return v
}

func duration(to *time.Duration, least, most time.Duration) value {
	parse := within(least, most)
	return scalar(to, strict.Written("duration", to, parse), parse, job.FormatDuration)
}

// count is a whole number from 1 to most.
func count(to *int, most int) value {
	v := scalar(to, strict.Int(to, 1, most), func(given string) (int, error) {
		n, err := strconv.Atoi(given)
		if err != nil || n < 1 || n > most {
			return 0, strict.Want(fmt.Sprintf("%q is not a count", given), fmt.Sprintf("write 1 to %d", most))
		}
		return n, nil
	}, strconv.Itoa)
	v.write = func() any {
		if *to == 0 {
			return nil
		}
		return *to
	}
	return v
}

// boolean is true or false.
func boolean(to *bool) value {
	v := scalar(to, strict.Bool(to), strconv.ParseBool, strconv.FormatBool)
	v.write = func() any {
		if !*to {
			return nil
		}
		return true
	}
	return v
}

// secret is a text that is never shown and never written.
func secret(to *Secret) value {
	v := scalar(to, strict.Value{}, func(given string) (Secret, error) { return Secret(given), nil }, Secret.String)
	v.write = func() any { return nil }
	return v
}

// tlsSwitch is whether TLS is on. In the file an empty mapping switches it on.
func (s *Settings) tlsSwitch() value {
	on := &s.Kafka.TLS.Enabled
	return value{
		set: func(given string) error {
			b, err := strconv.ParseBool(given)
			if err != nil {
				return strict.Want(fmt.Sprintf("%q is neither true nor false", given), "write true or false")
			}
			*on = b
			return nil
		},
		text: func() string {
			if !*on && !s.isSet("kafka.tls") {
				return ""
			}
			return strconv.FormatBool(*on)
		},
		write: func() any {
			if !*on {
				return nil
			}
			return struct{}{}
		},
	}
}

func brokers(to *[]string) value {
	return value{
		key: strict.Each(func() strict.Value {
			var one string
			return strict.Then(strict.Parsed("broker", &one, hostPort),
				func(*strict.Document, string) { *to = append(*to, one) })
		}),
		set: func(given string) error {
			var all []string
			for _, one := range strings.Split(strings.Trim(given, "[]"), ",") {
				broker, err := hostPort(strings.TrimSpace(one))
				if err != nil {
					return err
				}
				all = append(all, broker)
			}
			*to = all
			return nil
		},
		text:  func() string { return strings.Join(*to, ",") },
		write: func() any { return texts(*to) },
	}
}

// programs are patterns of absolute paths, as path.Match reads them.
func programs(to *[]string) value {
	return value{
		key: strict.Each(func() strict.Value {
			var one string
			return strict.Then(strict.Parsed("pattern", &one, programPattern),
				func(*strict.Document, string) { *to = append(*to, one) })
		}),
		set: func(given string) error {
			var all []string
			for _, one := range strings.Split(strings.Trim(given, "[]"), ",") {
				p, err := programPattern(strings.TrimSpace(one))
				if err != nil {
					return err
				}
				all = append(all, p)
			}
			*to = all
			return nil
		},
		text:  func() string { return strings.Join(*to, ",") },
		write: func() any { return texts(*to) },
	}
}

func programPattern(text string) (string, error) {
	if _, err := pathpkg.Match(text, ""); err != nil || !filepath.IsAbs(text) || pathpkg.Clean(text) != text {
		return "", strict.Want(fmt.Sprintf("%q is not a pattern of absolute paths", text),
			"write paths such as /opt/jobs/sessions or /opt/jobs/*")
	}
	return text, nil
}

// command is a program with its arguments, which may hold a token: only the program is shown.
func command(to *[]string) value {
	return value{
		key: strict.Texts(to),
		text: func() string {
			switch len(*to) {
			case 0:
				return ""
			case 1:
				return (*to)[0]
			}
			return (*to)[0] + " " + hidden
		},
		write: func() any { return texts(*to) },
	}
}

// texts is a list as the file has it; nil when it is empty.
func texts(all []string) any {
	if len(all) == 0 {
		return nil
	}
	return all
}

func hostPort(text string) (string, error) {
	host, port, err := net.SplitHostPort(text)
	n, portErr := strconv.Atoi(port)
	if err != nil || portErr != nil || host == "" || n < 0 || n > 65535 || strings.ContainsAny(text, " /@") {
		return "", strict.Want(fmt.Sprintf("%q is not HOST:PORT", redact(text)),
			"write a host and a port, such as 127.0.0.1:9092")
	}
	return text, nil
}

func schemaName(text string) (string, error) {
	if text == "" || len(text) > job.MaxIdentifier || strings.HasPrefix(text, "pg_") || text == "information_schema" ||
		strings.ContainsRune(text, 0) {
		return "", strict.Want(fmt.Sprintf("%q cannot be a schema of ours", text),
			"write a name of 1 to 63 bytes that does not begin with pg_")
	}
	return text, nil
}

func memorySize(text string) (int64, error) {
	n, err := job.ParseSize(text)
	if err == nil && n < 64<<20 {
		err = strict.Want(text+" is too little", "write 64MiB or more")
	}
	return n, err
}

// sizeText is a number of bytes in the largest unit that holds it exactly.
func sizeText(n int64) string {
	for _, unit := range []struct {
		bytes int64
		name  string
	}{{1e9, "GB"}, {1 << 30, "GiB"}, {1e6, "MB"}, {1 << 20, "MiB"}, {1 << 10, "KiB"}} {
		if n > 0 && n%unit.bytes == 0 {
			return strconv.FormatInt(n/unit.bytes, 10) + unit.name
		}
	}
	return strconv.FormatInt(n, 10) + "B"
}

func within(least, most time.Duration) func(string) (time.Duration, error) {
	return func(text string) (time.Duration, error) {
		d, err := job.ParseDuration(text)
		if err == nil && (d < least || d > most) {
			err = strict.Want(text+" is out of range", "write "+job.FormatDuration(least)+" to "+job.FormatDuration(most))
		}
		return d, err
	}
}

func asIs(text string) (string, error) { return text, nil }
