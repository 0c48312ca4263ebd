package report

import "strings"

// changedLine is one line of a text diff.
type changedLine struct {
	Sign string // "+", "-", a space, or "⋯" for omitted equal lines
	Text string
}

const (
	around = 3 // equal lines shown before and after a change
	// largest number of line pairs compared; beyond it everything from the first to the last change is shown as replaced
	mostWork = 4_000_000
)

// compareLines returns the line diff of two texts with a few lines of context, or nil if they are equal.
func compareLines(from, to string) []changedLine {
	a, b := linesOf(from), linesOf(to)
	head := 0
	for head < len(a) && head < len(b) && a[head] == b[head] {
		head++
	}
	tail := 0
	for tail < len(a)-head && tail < len(b)-head && a[len(a)-1-tail] == b[len(b)-1-tail] {
		tail++
	}
	if head == len(a) && head == len(b) {
		return nil
	}
	var all []changedLine
	for _, text := range a[:head] {
		all = append(all, changedLine{" ", text})
	}
	all = append(all, replaced(a[head:len(a)-tail], b[head:len(b)-tail])...)
	for _, text := range a[len(a)-tail:] {
		all = append(all, changedLine{" ", text})
	}
	return near(all)
}

func linesOf(text string) []string {
	if text = strings.TrimRight(text, "\n"); text == "" {
		return nil
	}
	return strings.Split(text, "\n")
}

// replaced returns the diff of a and b by the longest common subsequence of their lines.
func replaced(a, b []string) []changedLine {
	var out []changedLine
	i, j := 0, 0
	if len(a)*len(b) <= mostWork {
		common := make([][]int32, len(a)+1) // length for a[i:] and b[j:]
		for i := range common {
			common[i] = make([]int32, len(b)+1)
		}
		for i := len(a) - 1; i >= 0; i-- {
			for j := len(b) - 1; j >= 0; j-- {
				if a[i] == b[j] {
					common[i][j] = common[i+1][j+1] + 1
				} else {
					common[i][j] = max(common[i+1][j], common[i][j+1])
				}
			}
		}
		for i < len(a) && j < len(b) {
			switch {
			case a[i] == b[j]:
				out = append(out, changedLine{" ", a[i]})
				i, j = i+1, j+1
			case common[i+1][j] >= common[i][j+1]:
				out = append(out, changedLine{"-", a[i]})
				i++
			default:
				out = append(out, changedLine{"+", b[j]})
				j++
			}
		}
	}
	for _, text := range a[i:] {
		out = append(out, changedLine{"-", text})
	}
	for _, text := range b[j:] {
		out = append(out, changedLine{"+", text})
	}
	return out
}

// near drops equal lines that are far from a change.
func near(all []changedLine) []changedLine {
	keep := make([]bool, len(all))
	for i, l := range all {
		if l.Sign == " " {
			continue
		}
		for k := max(0, i-around); k < min(len(all), i+around+1); k++ {
			keep[k] = true
		}
	}
	var out []changedLine
	for i, l := range all {
		switch {
		case keep[i]:
			out = append(out, l)
		case i == 0 || keep[i-1]:
			out = append(out, changedLine{Sign: "⋯"})
		}
	}
	return out
}
