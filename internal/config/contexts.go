package config

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/kappactl/kappactl/internal/job/strict"
)

// ContextInfo is one context of a settings file.
type ContextInfo struct {
	Name    string   `json:"name"`
	Current bool     `json:"current"` // commands without --context use it
	Brokers []string `json:"brokers"`
	DSN     string   `json:"dsn"` // without a password; empty: the PG* variables say it all
	Schema  string   `json:"schema"`
}

// Contexts lists the contexts of the settings file that counts, by name. It is a *job.Refusal when there is no such file.
func Contexts(flags Flags, e Env) ([]ContextInfo, error) {
	f, err := contextFile(flags, e)
	if err != nil {
		return nil, err
	}
	wanted, _ := wantedContext(flags, e)
	chosen, err := f.choose(wanted, "")
	current := ""
	if err == nil { // else none of them is current
		current = chosen.Context
	}
	var out []ContextInfo
	for _, name := range f.names() {
		s := f.contexts[name]
		s.fillDefaults(Env{})
		out = append(out, ContextInfo{
			Name: name, Current: name == current, Brokers: append([]string{}, s.Brokers...), DSN: s.DSN.String(), Schema: s.Schema,
		})
	}
	return out, nil
}

func contextFile(flags Flags, e Env) (*file, error) {
	path, _ := e.settingsFile(flags)
	if path == "" {
		return nil, usage("there is no settings file, so there are no contexts", "name one with --config, or write ./kappactl.yaml; kappactl dev makes one")
	}
	return readFile(path)
}

// UseContext makes a context the current one of the settings file that counts: it writes the key current and leaves every other byte
// as it was. Readers see the old file or the whole new one. It returns the file's path and the context that was current; dry writes
// nothing.
func UseContext(flags Flags, e Env, name string, dry bool) (path, before string, err error) {
	f, err := contextFile(flags, e)
	if err != nil {
		return "", "", err
	}
	if f.contexts[name] == nil {
		return "", "", usage("there is no context "+name+" in "+f.path, strict.Suggest(name, f.names()))
	}
	if f.current == name || dry {
		return f.path, f.current, nil
	}
	text, err := os.ReadFile(f.path)
	if err != nil {
		return "", "", fmt.Errorf("read settings: %w", err)
	}
	changed, err := withCurrent(text, f.doc, name)
	if err != nil {
		return "", "", usage("the key current of "+f.path+" "+err.Error(), "write it by hand: current: "+name)
	}
	return f.path, f.current, replaceFile(f.path, changed)
}

var errUnusualYAML = errors.New("is written in a way that cannot be changed safely")

// withCurrent changes the value of current in the text of a settings file, or adds the key before the first one.
func withCurrent(text []byte, doc *strict.Document, name string) ([]byte, error) {
	word, err := yaml.Marshal(name)
	if err != nil {
		return nil, err
	}
	value := strings.TrimSpace(string(word))
	lines := strings.SplitAfter(string(text), "\n")
	if n := doc.Node("current"); n != nil {
		line := []rune(lines[n.Line-1])
		end := n.Column - 1 + len([]rune(n.Value))
		if n.Style&(yaml.DoubleQuotedStyle|yaml.SingleQuotedStyle) != 0 {
			end += 2
		}
		if end > len(line) {
			return nil, errUnusualYAML
		}
		lines[n.Line-1] = string(line[:n.Column-1]) + value + string(line[end:])
	} else {
		first, newline := doc.Node("").Line-1, "\n" // of a block mapping; sameBut finds out when it is not one
		if strings.HasSuffix(lines[0], "\r\n") {
			newline = "\r\n"
		}
		lines[first] = "current: " + value + newline + lines[first]
	}
	changed := []byte(strings.Join(lines, ""))
	return changed, sameBut(text, changed, name)
}

// sameBut proves that two settings files say the same but for the current context.
func sameBut(before, after []byte, name string) error {
	var a, b map[string]any
	if err := errors.Join(yaml.Unmarshal(before, &a), yaml.Unmarshal(after, &b)); err != nil || b["current"] != name {
		return errUnusualYAML
	}
	delete(a, "current")
	delete(b, "current")
	one, errA := yaml.Marshal(a)
	two, errB := yaml.Marshal(b)
	if errA != nil || errB != nil || !bytes.Equal(one, two) {
		return errUnusualYAML
	}
	return nil
}

// replaceFile puts text in place of a file's content at once, keeping its permissions and a symbolic link to it.
func replaceFile(path string, text []byte) error {
	real, err := filepath.EvalSymlinks(path)
	if err != nil {
		return fmt.Errorf("write settings: %w", err)
	}
	info, err := os.Stat(real)
	if err != nil {
		return fmt.Errorf("write settings: %w", err)
	}
	return writeWhole(real, text, info.Mode().Perm())
}
