package strict

import (
	"slices"
	"strings"
)

// Suggest returns the fix for an unknown name: the closest known one, or all of them.
func Suggest(name string, known []string) string {
	all := "known: " + strings.Join(known, ", ")
	if close := Nearest(name, known); close != "" {
		return "did you mean " + close + "? " + all
	}
	return all
}

// note records which mappings accept which keys, from the one at path downwards.
func (d *Document) note(keys []Key, path string) {
	for _, k := range keys {
		d.homes[k.Name] = append(d.homes[k.Name], path)
		home := Join(path, k.Name)
		if k.Value.List {
			home = "an item of " + home
		}
		d.note(k.Value.Keys, home)
	}
}

// cure returns the fix for an unknown key of the mapping at path: move it to the mapping that accepts it, or correct
// its spelling.
func (d *Document) cure(name, path string, known []string) string {
	var homes []string
	for _, home := range d.homes[name] {
		switch home {
		case path:
		case "":
			homes = append(homes, "the top level")
		default:
			homes = append(homes, home)
		}
	}
	if len(homes) == 0 || len(homes) > 2 || Nearest(name, known) != "" {
		return Suggest(name, known)
	}
	return "it is a key of " + strings.Join(homes, " and of ") + ": move it there. Known here: " +
		strings.Join(known, ", ")
}

// Nearest returns the known name that name is probably a misspelling of, or "". Of two equally close names it returns
// the longer one, because omitted letters are more frequent than added ones.
func Nearest(name string, known []string) string {
	best, distance := "", 3
	for _, k := range known {
		d := edits([]rune(strings.ToLower(clip(name))), []rune(strings.ToLower(k)))
		closer := d < distance || d == distance && len(k) > len(best)
		if closer && d <= min(2, max(1, len(k)/3)) {
			best, distance = k, d
		}
	}
	return best
}

// edits counts insertions, deletions, replacements and swaps of neighbours (optimal string alignment distance).
func edits(a, b []rune) int {
	rows := make([][]int, len(a)+1)
	for i := range rows {
		rows[i] = make([]int, len(b)+1)
		rows[i][0] = i
	}
	for j := range rows[0] {
		rows[0][j] = j
	}
	for i := 1; i <= len(a); i++ {
		for j := 1; j <= len(b); j++ {
			replace := rows[i-1][j-1]
			if a[i-1] != b[j-1] {
				replace++
			}
			rows[i][j] = slices.Min([]int{replace, rows[i-1][j] + 1, rows[i][j-1] + 1})
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				rows[i][j] = min(rows[i][j], rows[i-2][j-2]+1)
			}
		}
	}
	return rows[len(a)][len(b)]
}
