package scaffold

import (
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/kappactl/kappactl/internal/job"
)

// reserved are words that DuckDB or PostgreSQL does not take as a column's name everywhere without quotes.
const reserved = ` all analyse analyze and anti any array as asc asof asymmetric at authorization binary both by case cast check
collate collation column concurrently constraint create cross current_catalog current_date current_role current_schema
current_time current_timestamp current_user default deferrable desc describe distinct do else end except false fetch for
foreign freeze from full generated glob grant group having ilike in initially inner intersect into is isnull join lambda
lateral leading left like limit localtime localtimestamp map natural not notnull null offset on only or order outer
overlaps pivot pivot_longer pivot_wider placing positional primary qualify references returning right select semi
session_user show similar some struct summarize symmetric system_user table tablesample then to trailing true try_cast
union unique unpack unpivot user using variadic verbose when where window with between exists extract grouping_id
interval nullif overlay position row setof substring treat trim values coalesce source `

// isReserved reports whether name is a word of SQL, or the relation that the query reads.
func isReserved(name string) bool { return slices.Contains(strings.Fields(reserved), name) }

// snake turns the name of a field into words of lower-case letters, digits and _.
func snake(name string) string {
	runes := []rune(name)
	var b strings.Builder
	for i, r := range runes {
		switch {
		case unicode.IsUpper(r):
			after := i+1 < len(runes) && unicode.IsLower(runes[i+1])
			if i > 0 && (unicode.IsLower(runes[i-1]) || unicode.IsDigit(runes[i-1]) || unicode.IsUpper(runes[i-1]) && after) {
				b.WriteByte('_')
			}
			b.WriteRune(unicode.ToLower(r))
		case unicode.IsLetter(r) && r != utf8.RuneError || unicode.IsDigit(r):
			b.WriteRune(r)
		default:
			b.WriteByte('_')
		}
	}
	return strings.Join(strings.FieldsFunc(b.String(), func(r rune) bool { return r == '_' }), "_")
}

// columnName proposes a name for the value at a path: the names of its steps, joined.
func columnName(path []job.Step) string {
	words := make([]string, 0, len(path))
	for _, s := range path {
		if w := snake(s.Name); w != "" {
			words = append(words, w)
		}
	}
	name := strings.Join(words, "_")
	if len(name) > job.MaxIdentifier-8 && len(words) > 0 {
		name = cut(words[len(words)-1], job.MaxIdentifier-8)
	}
	switch first, _ := utf8.DecodeRuneInString(name); {
	case name == "":
		name = "field"
	case !unicode.IsLetter(first):
		name = "c_" + name
	}
	if isReserved(name) {
		name += "_"
	}
	return name
}

// cut shortens a text to at most n bytes.
func cut(s string, n int) string {
	for len(s) > n {
		_, size := utf8.DecodeLastRuneInString(s)
		s = s[:len(s)-size]
	}
	return s
}

// unique returns name, or name with the first number that makes it unlike the names that are taken.
func unique(name string, taken map[string]bool) string {
	out := name
	for i := 2; taken[strings.ToLower(out)]; i++ {
		out = fmt.Sprintf("%s_%d", name, i)
	}
	taken[strings.ToLower(out)] = true
	return out
}
