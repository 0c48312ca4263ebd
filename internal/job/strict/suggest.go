package strict

import (
	"slices"
	"strings"
)

// Suggest is the cure for a name that is not known: the closest known one, and all of them.
func Suggest(name string, known []string) string {
	all := "known: " + strings.Join(known, ", ")
	if close := Nearest(name, known); close != "" {
		return "did you mean " + close + "? " + all
	}
	return all
}

// Nearest is the known name that a typing error away from name would be, or empty. Of two as close the longer wins: letters are
// left out more often than added.
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
