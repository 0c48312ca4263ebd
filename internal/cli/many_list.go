package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/kappactl/kappactl/internal/job"
)

// list returns the job files that the arguments name. whole is set if they stand for as many files as there are: a
// folder, several arguments, or those that changed.
func (j jobFiles) list(ctx context.Context) (files []string, whole bool, err error) {
	whole = len(j.args) > 1 || j.since != ""
	for _, arg := range j.args {
		info, err := os.Stat(arg)
		if arg == standardInput || err != nil || !info.IsDir() {
			files = append(files, arg) // what cannot be read fails by itself
			continue
		}
		whole = true
		found, err := j.below(arg)
		if err != nil {
			return nil, true, err
		}
		files = append(files, found...)
	}
	seen := map[string]bool{}
	files = slices.DeleteFunc(files, func(path string) bool {
		twice := seen[filepath.Clean(path)]
		seen[filepath.Clean(path)] = true
		return twice
	})
	if j.since == "" {
		return files, whole, nil
	}
	changed, err := j.changed(ctx, files)
	if err == nil && len(changed) == 0 {
		j.progress("no job file differs from %s", j.since)
	}
	return changed, whole, err
}

// below returns the job files in a folder and the folders in it.
func (j jobFiles) below(folder string) ([]string, error) {
	var files []string
	err := filepath.WalkDir(folder, func(path string, e fs.DirEntry, err error) error {
		hidden := strings.HasPrefix(e.Name(), ".") && path != folder
		switch {
		case err != nil:
			return err
		case hidden && e.IsDir():
			return fs.SkipDir
		case hidden, e.IsDir(), !slices.Contains([]string{".yaml", ".yml"}, filepath.Ext(path)):
			return nil
		}
		if info, err := os.Stat(path); err == nil && info.IsDir() { // behind a link
			return nil
		}
		if isJobFile(path) {
			files = append(files, path)
		} else {
			j.progress("%s: skipped: it has no key job", path)
		}
		return nil
	})
	if err != nil {
		return nil, &job.Refusal{
			Code: job.ExitUsage, Cause: oneLine(err), Next: "name folders and files that can be read",
			Err: err,
		}
	}
	if len(files) == 0 {
		return nil, &job.Refusal{
			Code: job.ExitUsage, Cause: "no job file is in " + folder, Next: "kappactl new JOB --topic TOPIC --file " +
				filepath.Join(folder, "JOB.yaml"),
		}
	}
	return files, nil
}

// jobKey finds the key job in a text that is no YAML, or YAML with faults.
var jobKey = regexp.MustCompile(`(?m)^job\s*:`)

// isJobFile reports whether a file in a folder is to be a job file. One that cannot be read is: it fails by itself.
func isJobFile(path string) bool {
	text, err := os.ReadFile(path)
	if err != nil {
		return true
	}
	var doc yaml.Node
	if yaml.Unmarshal(text, &doc) != nil || len(doc.Content) == 0 || doc.Content[0].Kind != yaml.MappingNode {
		return jobKey.Match(text)
	}
	keys := doc.Content[0].Content
	for i := 0; i < len(keys); i += 2 {
		if keys[i].Value == "job" {
			return true
		}
	}
	return false
}

// changed returns the files that differ from the revision, or from where the branch left it, or are in no revision.
func (j jobFiles) changed(ctx context.Context, files []string) ([]string, error) {
	if strings.HasPrefix(j.since, "-") {
		return nil, j.noRevision(errors.New("a revision does not begin with -"))
	}
	if j.flags.vars != "" {
		same, err := j.unchanged(ctx, j.flags.vars)
		if err != nil {
			return nil, err
		}
		if !same { // other values make other versions
			return files, nil
		}
	}
	var out []string
	for _, path := range files {
		same, err := j.unchanged(ctx, path)
		if err != nil {
			return nil, err
		}
		if !same {
			out = append(out, path)
		}
	}
	return out, nil
}

// unchanged reports whether a file is as it was where the current branch left the revision.
func (j jobFiles) unchanged(ctx context.Context, path string) (bool, error) {
	dir, name := filepath.Dir(path), filepath.Base(path)
	base, err := git(ctx, dir, "merge-base", j.since, "HEAD")
	if err != nil {
		if _, known := git(ctx, dir, "rev-parse", "--verify", "--quiet", j.since+"^{commit}"); known != nil {
			return false, j.noRevision(err)
		}
		base = j.since // of a history that is not connected, such as that of a shallow clone
	}
	listed, err := git(ctx, dir, "ls-files", "--", name)
	if err != nil {
		return false, j.noRevision(err)
	}
	if listed == "" {
		return false, nil // it is not in the repository
	}
	changed, err := git(ctx, dir, "diff", "--name-only", base, "--", name)
	if err != nil {
		return false, j.noRevision(err)
	}
	return changed == "", nil
}

func (j jobFiles) noRevision(err error) error {
	return &job.Refusal{
		Code: job.ExitUsage, Cause: fmt.Sprintf("--changed-since %s: %s", j.since, oneLine(err)),
		Next: "name a revision of the repository that holds the job files; a CI checkout may lack it: git fetch origin main, or fetch-depth: 0",
		Err:  err,
	}
}

// git runs git in a folder.
func git(ctx context.Context, dir string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, "git", append([]string{"-C", dir}, args...)...)
	var errs bytes.Buffer
	cmd.Stderr = &errs
	out, err := cmd.Output()
	if text := strings.TrimSpace(errs.String()); err != nil && text != "" {
		first, _, _ := strings.Cut(text, "\n")
		err = errors.New(first)
	}
	return strings.TrimSpace(string(out)), err
}
