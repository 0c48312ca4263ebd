package reason

import (
	"database/sql/driver"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"sync"
	"text/template"
)

// Code identifies a Reason. Codes are part of the JSON output: they are added and never renamed.
type Code string

// Args are the values that a code's text names. They hold only what JSON has, and nested Reasons, so that they are the
// same after a round trip through it: durations are seconds, times are RFC 3339, numbers come back as float64.
type Args map[string]any

// Reason is why something is as it is. The zero value is no reason.
type Reason struct {
	Code Code `json:"code,omitempty"`
	Args Args `json:"args,omitempty"`
}

// IsZero reports whether there is no reason.
func (r Reason) IsZero() bool { return r.Code == "" }

// Is reports whether the reason, or one nested in it, has one of the codes.
func (r Reason) Is(codes ...Code) bool {
	if slices.Contains(codes, r.Code) {
		return true
	}
	for _, v := range r.Args {
		if nested, ok := asReason(v); ok && nested.Is(codes...) {
			return true
		}
	}
	return false
}

// Key identifies what the reason is about, as long as it is about the same: its code, the names among its arguments,
// and the keys of the reasons nested in it, without amounts and times.
func (r Reason) Key() string {
	key := string(r.Code)
	for _, name := range []string{"agent", "topic", "at", "table", "pid", "columns", "hook", "verdict"} {
		if v, ok := r.Args[name]; ok {
			key += fmt.Sprintf(" %s=%v", name, v)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(r.Args)) {
		if nested, ok := asReason(r.Args[name]); ok && !nested.IsZero() {
			key += fmt.Sprintf(" %s=(%s)", name, nested.Key())
		}
	}
	return key
}

// Equal reports whether two reasons are the same in the database.
func (r Reason) Equal(other Reason) bool {
	if r.Code != other.Code || len(r.Args) != len(other.Args) {
		return false
	}
	return len(r.Args) == 0 || reflect.DeepEqual(r.Args, other.Args) || reflect.DeepEqual(r.stored(), other.stored())
}

// stored is the reason as JSON brings it back; nil when it cannot be stored.
func (r Reason) stored() any {
	var out any
	text, err := json.Marshal(r)
	if err != nil || json.Unmarshal(text, &out) != nil {
		return nil
	}
	return out
}

// Text is the reason in English; empty for the zero value. A code of a newer release is shown with its arguments.
func (r Reason) Text() string {
	if r.IsZero() {
		return ""
	}
	if t := catalogue()[r.Code]; t != nil {
		var b strings.Builder
		if err := t.Execute(&b, r.resolved()); err == nil {
			return b.String()
		}
	}
	return r.raw()
}

// More is the reason as that of a version: it is true of one partition, and of so many more.
func (r Reason) More(partitions int) Reason { return r.with(argMore, partitions) }

// Next is the reason followed by what to do about it.
func (r Reason) Next(next Reason) Reason { return r.with(argNext, next) }

// with is the reason with one argument more.
func (r Reason) with(name string, value any) Reason {
	args := Args{name: value}
	maps.Copy(args, r.Args)
	args[name] = value
	return Reason{r.Code, args}
}

// resolved are the arguments with the texts of nested reasons in their places.
func (r Reason) resolved() map[string]any {
	out := make(map[string]any, len(r.Args))
	for name, v := range r.Args {
		out[name] = resolve(v)
	}
	return out
}

// Value is the reason as JSON, for the database.
func (r Reason) Value() (driver.Value, error) {
	text, err := json.Marshal(r)
	return string(text), err
}

// String is Text, for logs.
func (r Reason) String() string { return r.Text() }

// raw is the code with its arguments, in a stable order.
func (r Reason) raw() string {
	parts := make([]string, 0, len(r.Args))
	for _, name := range slices.Sorted(maps.Keys(r.Args)) {
		parts = append(parts, fmt.Sprintf("%s=%v", name, r.Args[name]))
	}
	if len(parts) == 0 {
		return string(r.Code)
	}
	return fmt.Sprintf("%s (%s)", r.Code, strings.Join(parts, ", "))
}

// Codes lists every code in alphabetical order.
func Codes() []Code { return slices.Sorted(maps.Keys(texts())) }

// Texts is the text of each reason, in the same order.
func Texts(reasons []Reason) []string {
	out := make([]string, len(reasons))
	for i, r := range reasons {
		out[i] = r.Text()
	}
	return out
}

// CodesOf is the code of each reason, in the same order.
func CodesOf(reasons []Reason) []Code {
	out := make([]Code, len(reasons))
	for i, r := range reasons {
		out[i] = r.Code
	}
	return out
}

// What any reason may have beside the arguments of its code.
const (
	argMore = "and_more"
	argNext = "and_next"
	ending  = `{{if .and_more}} (and {{plural .and_more "partition" "partitions"}} more){{end}}{{if .and_next}}; ` +
		`{{text .and_next}}{{end}}`
)

// subjects are the texts by subject.
func subjects() []map[Code]string {
	return []map[Code]string{
		generalTexts(), verdictTexts(), troubleTexts(), faultTexts(), coverageTexts(), warningTexts(), deploymentTexts(),
		checkTexts(),
		eventTexts(), archiveTexts(), batchTexts(), experimentTexts(), judgeTexts(), scheduleTexts(), actTexts(),
		refusalTexts(), stageRefusalTexts(),
		tryTexts(),
	}
}

// texts is the template of every code.
func texts() map[Code]string {
	out := map[Code]string{}
	for _, s := range subjects() {
		maps.Copy(out, s)
	}
	return out
}

// catalogue is every text, parsed once.
var catalogue = sync.OnceValue(func() map[Code]*template.Template {
	out := map[Code]*template.Template{}
	for code, text := range texts() {
		out[code] = template.Must(template.New(string(code)).Funcs(funcs()).Parse(text + ending))
	}
	return out
})
