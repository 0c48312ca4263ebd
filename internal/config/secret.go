package config

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"strings"
	"time"
)

// Secret is a text that no message, log or JSON shows. string(s) is the text.
type Secret string

const hidden = "***"

func (s Secret) String() string { return hidden }

// GoString hides the text from %#v.
func (s Secret) GoString() string { return hidden }

// Format hides the text from every verb of fmt.
func (s Secret) Format(f fmt.State, _ rune) { _, _ = f.Write([]byte(hidden)) }

// MarshalText hides the text from encoders.
func (s Secret) MarshalText() ([]byte, error) { return []byte(hidden), nil }

// LogValue hides the text from slog.
func (s Secret) LogValue() slog.Value { return slog.StringValue(hidden) }

// Source is where a password comes from: one of the fields, or none.
type Source struct {
	Value   Secret   // from a variable
	File    string   // its first line
	Command []string // program and arguments; the first line of its output
}

// IsZero reports whether there is no source.
func (s Source) IsZero() bool { return s.Value == "" && s.File == "" && len(s.Command) == 0 }

// commandTimeout bounds a password command.
const commandTimeout = 30 * time.Second

// Read fetches the password. The error names the file or the program, and nothing that came from them.
func (s Source) Read(ctx context.Context) (Secret, error) {
	switch {
	case s.Value != "":
		return s.Value, nil
	case s.File != "":
		text, err := os.ReadFile(s.File)
		if err != nil {
			return "", fmt.Errorf("read password file: %w", err)
		}
		return firstLine(text, "password file "+s.File)
	case len(s.Command) > 0:
		return s.run(ctx)
	}
	return "", nil
}

func (s Source) run(ctx context.Context) (Secret, error) {
	ctx, cancel := context.WithTimeout(ctx, commandTimeout)
	defer cancel()
	command := exec.CommandContext(ctx, s.Command[0], s.Command[1:]...)
	command.WaitDelay = time.Second
	out, err := command.Output()
	if err != nil {
		return "", fmt.Errorf("run password command %s: %w", s.Command[0], err)
	}
	return firstLine(out, "password command "+s.Command[0])
}

func firstLine(text []byte, from string) (Secret, error) {
	line, _, _ := bytes.Cut(text, []byte("\n"))
	secret := strings.TrimSuffix(string(line), "\r")
	if secret == "" {
		return "", fmt.Errorf("%s: the first line is empty", from)
	}
	return Secret(secret), nil
}
