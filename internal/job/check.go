package job

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/kappactl/kappactl/internal/job/strict"
)

// The times at which a check runs: before the flip, in the rollback window after it, or both.
const (
	CheckBefore = "before"
	CheckAfter  = "after"
	CheckBoth   = "both"
)

// Check gates promote or runs after the flip. Its SQL must return one row with one true, or its diff must be within its
// limits.
type Check struct {
	Name    string        `json:"name"`
	SQL     string        `json:"sql,omitempty"`
	Diff    *DiffLimit    `json:"diff,omitempty"`
	When    string        `json:"when"` // before, after or both; empty: before
	Every   time.Duration `json:"every"`
	Timeout time.Duration `json:"timeout"`
}

// Runs reports whether the check runs in a stage: CheckBefore or CheckAfter.
func (c Check) Runs(stage string) bool {
	return c.When == stage || c.When == CheckBoth || (c.When == "" && stage == CheckBefore)
}

// DiffLimit bounds how much a candidate may differ from live, key by key. Shares are relative to all keys of both, 0 to
// 1.
type DiffLimit struct {
	// MaxChanged is the largest share of keys that may differ: with other values, missing or extra. Differences with
	// their own limit below do not count here.
	MaxChanged float64  `json:"max_changed"`
	MaxMissing *float64 `json:"max_missing,omitempty"` // of keys that only live has
	MaxExtra   *float64 `json:"max_extra,omitempty"`   // of keys that only the candidate has
	DiffHow
}

// DiffHow configures a comparison.
type DiffHow struct {
	Ignore []string `json:"ignore,omitempty"` // columns that are not compared
	// PostgreSQL condition over the view's columns: the rows that are compared
	Where string `json:"where,omitempty"`
	// Tolerance is the largest difference between two numbers, relative to the larger one, that counts as equal;
	// Tolerances overrides it per column. 0 allows double precision and real a billionth, and nothing else any
	// difference.
	Tolerance  float64            `json:"tolerance,omitempty"`
	Tolerances map[string]float64 `json:"tolerances,omitempty"`
}

func checkList(to *[]Check) strict.Value {
	return strict.Each(func() strict.Value {
		c := Check{When: CheckBefore, Every: DefaultCheckEvery, Timeout: DefaultCheckTimeout}
		keys := strict.Mapping(
			strict.Key{Name: "name", Required: true, Value: strict.Parsed("check name", &c.Name, labelName)},
			strict.Key{Name: "sql", Value: strict.Parsed("query", &c.SQL, readingSQL)},
			strict.Key{Name: "diff", Value: diffKeys(&c.Diff)},
			strict.Key{Name: "when", Value: strict.OneOf(&c.When, CheckBefore, CheckAfter, CheckBoth)},
			strict.Key{Name: "every", Value: duration(&c.Every, time.Second, 24*time.Hour)},
			strict.Key{Name: "timeout", Value: duration(&c.Timeout, time.Second, time.Hour)},
		)
		return strict.Then(keys, func(d *strict.Document, path string) {
			switch {
			case c.SQL == "" && c.Diff == nil:
				d.RefuseAt(path, "the check has neither sql nor diff",
					"add sql: a PostgreSQL query that returns true, over the relation candidate")
			case c.SQL != "" && c.Diff != nil:
				d.RefuseAt(path, "the check has both sql and diff", "make two checks of it")
			case slices.ContainsFunc(*to, func(k Check) bool { return k.Name == c.Name }):
				d.RefuseAt(path+".name", fmt.Sprintf("check %q occurs twice", c.Name), "give each check a name of its own")
			default:
				*to = append(*to, c)
			}
		})
	})
}

func diffKeys(to **DiffLimit) strict.Value {
	var l DiffLimit
	optional := func(into **float64) strict.Value {
		var share float64
		return strict.Then(strict.Written("percentage", &share, ParsePercentage),
			func(*strict.Document, string) { *into = &share })
	}
	each := strict.Named("mapping of column names to percentages",
		func(_ *strict.Document, name, _ string, _ *yaml.Node) (strict.Value, bool) {
			var share float64
			return strict.Then(strict.Written("percentage", &share, ParsePercentage), func(*strict.Document, string) {
				if l.Tolerances == nil {
					l.Tolerances = map[string]float64{}
				}
				l.Tolerances[name] = share
			}), true
		})
	percentage := strict.Written("percentage", new(float64), ParsePercentage)
	each.Schema["additionalProperties"] = percentage.Schema
	return strict.Then(strict.Mapping(
		strict.Key{Name: "max_changed", Required: true, Value: strict.Written("percentage", &l.MaxChanged, ParsePercentage)},
		strict.Key{Name: "max_missing", Value: optional(&l.MaxMissing)},
		strict.Key{Name: "max_extra", Value: optional(&l.MaxExtra)},
		strict.Key{Name: "ignore", Value: nameList(&l.Ignore)},
		strict.Key{Name: "where", Value: strict.Parsed("condition", &l.Where, condition)},
		strict.Key{Name: "tolerance", Value: strict.Either(strict.Written("percentage", &l.Tolerance, ParsePercentage),
			each)},
	), func(*strict.Document, string) { *to = &l })
}

// readingSQL takes a query that only reads.
func readingSQL(text string) (string, error) {
	if err := ReadsOnly(text); err != nil {
		return "", strict.Want(err.Error(), "write one query that returns true, such as SELECT count(*) > 0 FROM candidate")
	}
	return text, nil
}

// errNotAQuery reports a check whose SQL is not a query. PostgreSQL would end the checks' transaction at a COMMIT.
var errNotAQuery = errors.New("a check is a query: it begins with SELECT, WITH, VALUES or TABLE")

// ReadsOnly returns an error unless the first word of a text is that of a query. Writes inside the query fail in its
// read-only transaction.
func ReadsOnly(text string) error {
	s := sqlScanner{rest: text}
	for {
		t, ok := s.next()
		switch {
		case !ok:
			return errNotAQuery
		case t.text == "(":
			continue
		}
		switch strings.ToUpper(t.text) {
		case "SELECT", "WITH", "VALUES", "TABLE":
			return nil
		}
		return errNotAQuery
	}
}

// Unended returns a statement without trailing semicolons, white space and comments, so that it can be put in
// parentheses.
func Unended(text string) string {
	s, end := sqlScanner{rest: text}, 0
	for {
		t, ok := s.next()
		if !ok {
			return text[:end]
		}
		if t.text != ";" {
			end = len(text) - len(s.rest)
		}
	}
}

// Names reports whether a SQL text names a relation or column of this name, also in quotes. It may be true because of a
// literal.
func Names(text, name string) bool {
	s := sqlScanner{rest: text}
	for {
		t, ok := s.next()
		if !ok {
			return false
		}
		if strings.EqualFold(strings.Trim(t.text, `"`), name) {
			return true
		}
	}
}

// CheckColumns returns Problems for columns in the diff checks of a job file that the layout lacks or has as keys, or
// nil.
func (s *Spec) CheckColumns(l Layout) error {
	var ps Problems
	for i, c := range s.Checks {
		if c.Diff == nil {
			continue
		}
		at := fmt.Sprintf("checks[%d].diff.", i)
		for n, name := range c.Diff.Ignore {
			if p := s.compared(l, name, fmt.Sprintf("%signore[%d]", at, n)); p != nil {
				ps = append(ps, *p)
			}
		}
		for _, name := range sortedNames(c.Diff.Tolerances) {
			if p := s.compared(l, name, at+"tolerance."+name); p != nil {
				ps = append(ps, *p)
			}
		}
	}
	if len(ps) == 0 {
		return nil
	}
	return ps
}

// compared returns the problem of a column whose values are not compared, or nil.
func (s *Spec) compared(l Layout, name, path string) *Problem {
	var known []string
	for _, v := range l.View {
		switch {
		case v.Name == name && v.Key:
			p := s.Problem(path, "", fmt.Sprintf("%q is a key: rows are found by it", name), "remove it")
			return &p
		case v.Name == name:
			return nil
		case !v.Key:
			known = append(known, v.Name)
		}
	}
	p := s.Problem(path, "", fmt.Sprintf("the view has no column %q", name), strict.Suggest(name, known))
	return &p
}

func sortedNames(m map[string]float64) []string {
	names := make([]string, 0, len(m))
	for name := range m {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}
