package cli

import (
	"encoding/xml"
	"fmt"
	"io"
	"strings"

	"github.com/kappactl/kappactl/internal/job"
)

// junitFormat is the value of --output for the XML that CI systems read test results from.
const junitFormat = "junit"

// junitSuites is the root element.
type junitSuites struct {
	XMLName  xml.Name     `xml:"testsuites"`
	Tests    int          `xml:"tests,attr"`
	Failures int          `xml:"failures,attr"`
	Errors   int          `xml:"errors,attr"`
	Suites   []junitSuite `xml:"testsuite"`
}

// junitSuite holds the tests of one job file.
type junitSuite struct {
	Name     string      `xml:"name,attr"`
	File     string      `xml:"file,attr,omitempty"`
	Tests    int         `xml:"tests,attr"`
	Failures int         `xml:"failures,attr"`
	Errors   int         `xml:"errors,attr"`
	Cases    []junitCase `xml:"testcase"`
}

type junitCase struct {
	Name    string        `xml:"name,attr"`
	Class   string        `xml:"classname,attr"`
	File    string        `xml:"file,attr,omitempty"`
	Line    int           `xml:"line,attr,omitempty"`
	Failure *junitProblem `xml:"failure"`
	Error   *junitProblem `xml:"error"`
}

type junitProblem struct {
	Message string `xml:"message,attr"`
	Type    string `xml:"type,attr"`
	Text    string `xml:",chardata"`
}

// junit are the tests of a job file as one suite.
func (r testResult) junit(file string) junitSuite {
	s := junitSuite{Name: string(r.Job), File: file, Tests: len(r.Tests), Failures: r.Failed}
	for _, t := range r.Tests {
		c := junitCase{Name: printableXML(t.Name), Class: string(r.Job), File: file, Line: t.Line}
		if !t.OK {
			text := strings.Join(testLines(t), "\n")
			c.Failure = &junitProblem{
				Message: printableXML(firstLine(text)), Type: "test",
				Text: printableXML(fmt.Sprintf("%s:%d\n%s", file, t.Line, text)),
			}
		}
		s.Cases = append(s.Cases, c)
	}
	return s
}

// junit is a failure as a suite of one test: of a job file that could not be tested.
func (f failure) junit() junitSuite {
	name := f.File
	if name == "" {
		name = "kappactl"
	}
	text := strings.Join(f.Causes, "\n")
	line := 0
	if len(f.Problems) > 0 {
		line = f.Problems[0].Line
	}
	return junitSuite{Name: name, File: f.File, Tests: 1, Errors: 1, Cases: []junitCase{{
		Name: "job file", Class: name, File: f.File, Line: line,
		Error: &junitProblem{Message: printableXML(firstLine(text)), Type: failureCode(f.Code), Text: printableXML(text)},
	}}}
}

// printableXML replaces what XML cannot hold.
func printableXML(s string) string { return job.Printable(strings.ToValidUTF8(s, "·")) }

// suite prints the tests of one job file, or keeps them for those of several.
func (a *app) suite(s junitSuite) error {
	if a.current().many {
		a.current().suite = &s
		return nil
	}
	return writeJUnit(a.out(), s)
}

// writeJUnit writes suites as one document.
func writeJUnit(w io.Writer, suites ...junitSuite) error {
	all := junitSuites{Suites: suites}
	for _, s := range suites {
		all.Tests, all.Failures, all.Errors = all.Tests+s.Tests, all.Failures+s.Failures, all.Errors+s.Errors
	}
	text, err := xml.MarshalIndent(all, "", "  ")
	if err != nil {
		return fmt.Errorf("print JUnit XML: %w", err)
	}
	_, err = fmt.Fprintf(w, "%s%s\n", xml.Header, text)
	return err
}
