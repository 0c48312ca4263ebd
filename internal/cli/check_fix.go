package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/internal/query"
	"github.com/kappactl/kappactl/internal/yamledit"
)

// fixResult is the output of check --fix.
type fixResult struct {
	Job     job.Name `json:"job"`
	File    string   `json:"file"`
	Changes []string `json:"changes"` // keys of the job file that change
	Written bool     `json:"written"`
	Text    string   `json:"text"`
}

// runFix prints or writes the job file with everything that the compiler changed in the query, or needs beside it.
func runFix(ctx context.Context, o checkOptions) error {
	spec, err := o.read(ctx, o.file)
	if err != nil {
		return err
	}
	fixed, err := query.Fix(ctx, spec)
	if err != nil {
		return err
	}
	result := fixResult{Job: spec.Job, File: o.file.path, Changes: []string{}, Text: string(spec.Text)}
	if fixed.Query != "" {
		result.Changes = append(result.Changes, "query")
	}
	if fixed.DistinctMax != 0 {
		result.Changes = append(result.Changes, "distinct_max")
	}
	if len(result.Changes) > 0 {
		if result.Text, err = fixedText(spec, fixed); err != nil {
			return err
		}
	}
	if o.write && len(result.Changes) > 0 {
		info, err := os.Stat(o.file.path)
		if err != nil {
			return fmt.Errorf("read the job file: %w", err)
		}
		if err := os.WriteFile(o.file.path, []byte(result.Text), info.Mode().Perm()); err != nil {
			return fmt.Errorf("write the job file: %w", err)
		}
		result.Written = true
	}
	switch {
	case len(result.Changes) == 0:
		o.progress("%s: nothing to change", o.file.path)
	case result.Written:
		o.progress("%s: %s written", o.file.path, strings.Join(result.Changes, ", "))
	}
	return o.outcome(ctx, result, func(w io.Writer) error {
		if o.write {
			return nil
		}
		_, err := io.WriteString(w, result.Text)
		return err
	}, nil)
}

// fixedText returns the text of a job file with its fixes. It keeps the comments outside the query.
func fixedText(spec *job.Spec, fixed query.Fixed) (string, error) {
	var doc yaml.Node
	if err := yaml.Unmarshal(spec.Text, &doc); err != nil {
		return "", fmt.Errorf("read the job file: %w", err)
	}
	if len(doc.Content) != 1 {
		return "", errors.New("read the job file: it is not one document")
	}
	root := doc.Content[0]
	if fixed.Query != "" {
		q := yamledit.Get(root, "query")
		if q == nil || strings.Contains(q.Value, "${") {
			return "", &job.Refusal{
				Code: job.ExitUsage, Cause: "the query has variables, so it cannot be rewritten",
				Next: "change the query by hand, as the warnings of kappactl check say",
			}
		}
		q.Value, q.Style = fixed.Query+"\n", yaml.LiteralStyle
	}
	if fixed.DistinctMax != 0 {
		if err := yamledit.Put(root, "distinct_max", fixed.DistinctMax); err != nil {
			return "", fmt.Errorf("change the job file: %w", err)
		}
	}
	text, err := yamledit.Encode(&doc)
	return string(text), err
}
