package cli

import (
	"fmt"
	"io"
	"strings"

	"github.com/rogpeppe/go-internal/diff"

	"github.com/kappactl/kappactl/internal/render"
)

// markdownFormat is the value of --output for the comment of a pull request.
const markdownFormat = "markdown"

const (
	// pageMark is the first line of a page, by which a script finds the comment that it wrote before.
	pageMark = "<!-- kappactl plan -->\n"
	// mostPage is how long a page may become; GitHub takes comments of up to 65,536 characters.
	mostPage = 60_000
	// mostDiff is how many lines of a diff are shown.
	mostDiff = 300
)

// textDiff is the unified diff of two job files, empty if they are equal.
func textDiff(fromName, from, toName, to string) string {
	text := string(diff.Diff(fromName, []byte(from), toName, []byte(to)))
	_, text, _ = strings.Cut(text, "\n") // a line with both names, which the next two repeat
	return text
}

// shortened is a diff without the lines after the first mostDiff.
func shortened(text string) string {
	lines := strings.SplitAfter(text, "\n")
	if len(lines) <= mostDiff {
		return text
	}
	return strings.Join(lines[:mostDiff], "") + fmt.Sprintf("… %d more lines\n", len(lines)-mostDiff)
}

// nextStep is a command as code, and any other advice as text.
func nextStep(next string) string {
	if strings.HasPrefix(next, "kappactl ") {
		return "`" + next + "`"
	}
	return cell(next)
}

// markdown is the plan as a section of a page.
func (r planResult) markdown(file string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "### %s: %s\n\n`%s`, live: %s\n\n", r.Job, cell(r.words()), file, known(r.Live))
	for _, f := range r.Refusals {
		fmt.Fprintf(&b, "> [!CAUTION]\n> `deploy` would refuse with exit code %d: %s\n", f.ExitCode, cell(f.Cause))
		if f.Next != "" {
			fmt.Fprintf(&b, ">\n> Next: %s\n", nextStep(f.Next))
		}
		b.WriteByte('\n')
	}
	for _, text := range r.Warnings {
		fmt.Fprintf(&b, "> [!WARNING]\n> %s\n\n", cell(text))
	}
	if r.Diff != "" {
		b.WriteString(fenced("diff", shortened(r.Diff)) + "\n")
	}
	b.WriteString("| | |\n| --- | --- |\n")
	r.facts(func(name, format string, args ...any) {
		fmt.Fprintf(&b, "| %s | %s |\n", name, cell(fmt.Sprintf(format, args...)))
	})
	return b.String()
}

// markdown is a failure as a section of a page.
func (f failure) markdown() string {
	title := f.File
	if title == "" {
		title = "kappactl"
	}
	text := "exit code " + fmt.Sprint(int(f.Code)) + "\n" + strings.Join(f.Causes, "\n") + "\n"
	if f.Next != "" {
		text += "next: " + f.Next + "\n"
	}
	return fmt.Sprintf("### %s: failed\n\n%s", cell(title), fenced("", text))
}

// cell is a text inside a table or a heading.
func cell(text string) string {
	return strings.NewReplacer("|", `\|`, "\n", "<br>", "<", "&lt;", "`", "'").Replace(strings.TrimSpace(text))
}

// fenced is a block of code that may hold fences itself.
func fenced(language, text string) string {
	fence := "```"
	for strings.Contains(text, fence) {
		fence += "`"
	}
	return fence + language + "\n" + strings.TrimSuffix(text, "\n") + "\n" + fence + "\n"
}

// page prints a section as a page, or keeps it for the page of several job files.
func (a *app) page(section string) error {
	if a.current().many {
		a.current().section = section
		return nil
	}
	_, err := io.WriteString(a.out(), pageMark+section)
	return err
}

// markdown is the page of several job files.
func (r manyResult) markdown() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s## kappactl plan: %s\n\n", pageMark, render.Plural(int64(len(r.Files)), "job file"))
	if len(r.Files) == 0 {
		b.WriteString("No job file has changed.\n")
		return b.String()
	}
	b.WriteString("| file | job | exit code | result |\n| --- | --- | ---: | --- |\n")
	for _, f := range r.Files {
		fmt.Fprintf(&b, "| `%s` | %s | %d | %s |\n", f.File, render.Or(string(f.Job)), f.ExitCode, cell(render.Or(f.Summary)))
	}
	for i, f := range r.Files {
		if b.Len()+len(f.section) > mostPage {
			fmt.Fprintf(&b, "\nThe plans of %d more files are in the output of the command.\n", len(r.Files)-i)
			break
		}
		fmt.Fprintf(&b, "\n<details>\n<summary>%s</summary>\n\n%s\n</details>\n", f.File, f.section)
	}
	return b.String()
}
