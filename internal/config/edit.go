package config

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/kappactl/kappactl/internal/yamledit"
)

var errPasswordInFile = errors.New("a connection string with a password is not written to a file")

// Write writes the settings of one context (s.Context, or dev) to a settings file. In a file that is there already, it
// replaces the connection of the context and every other setting that s has; further settings, contexts and comments
// stay. A new file is for this user only. Readers see the old file or the whole new one. A DSN with a password is
// refused.
func Write(path string, s Settings) error {
	if s.DSN.String() != string(s.DSN) || s.Password.Value != "" || s.Kafka.SASL.Password.Value != "" ||
		s.Archive.S3.Secret.Value != "" {
		return errPasswordInFile
	}
	context := cmp.Or(s.Context, "dev")
	_, err := os.Stat(path)
	isNew := errors.Is(err, fs.ErrNotExist)
	if !isNew {
		if _, err := readFile(path); err != nil {
			return err
		}
	}
	return edit(path, func(root *yaml.Node) error {
		if isNew {
			if err := yamledit.PutFirst(root, "current", context); err != nil {
				return err
			}
		}
		yamledit.Below(root, "contexts", context)
		for _, o := range table(&s) {
			if err := o.writeTo(root, context); err != nil {
				return err
			}
		}
		return nil
	})
}

// writeTo puts the value of a setting into the tree of a settings file. Without a value it removes a setting of the
// connection and leaves others as they are.
func (o Setting) writeTo(root *yaml.Node, context string) error {
	at := strings.Split(o.Name, ".")
	if !o.OfAgent() {
		at = append([]string{"contexts", context}, at...)
	}
	last := len(at) - 1
	switch v := o.value.write(); {
	case v == struct{}{}:
		yamledit.Below(root, at...)
	case v != nil:
		return yamledit.Put(yamledit.Below(root, at[:last]...), at[last], v)
	case !strings.Contains(o.Name, "."):
		yamledit.Remove(yamledit.Below(root, at[:last]...), at[last])
	}
	return nil
}

// edit changes the tree of a settings file, comments included, and writes the file when that changed it.
func edit(path string, change func(root *yaml.Node) error) error {
	text, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("write settings: %w", err)
	}
	doc := yaml.Node{Kind: yaml.DocumentNode, Content: []*yaml.Node{{Kind: yaml.MappingNode}}}
	if len(text) > 0 {
		if err := yaml.Unmarshal(bytes.ReplaceAll(text, []byte("\r\n"), []byte("\n")), &doc); err != nil {
			return fmt.Errorf("write settings: %w", err)
		}
	}
	before, err := yamledit.Encode(&doc)
	if err != nil {
		return fmt.Errorf("write settings: %w", err)
	}
	if err := change(doc.Content[0]); err != nil {
		return fmt.Errorf("write settings: %w", err)
	}
	after, err := yamledit.Encode(&doc)
	if err != nil {
		return fmt.Errorf("write settings: %w", err)
	}
	if bytes.Equal(before, after) && len(text) > 0 {
		return nil
	}
	return replaceFile(path, after)
}

// replaceFile replaces the content of a file at once and keeps its permissions and a symbolic link to it. A new file is
// for this user only.
func replaceFile(path string, text []byte) error {
	mode := os.FileMode(0o600)
	if real, err := filepath.EvalSymlinks(path); err == nil {
		info, err := os.Stat(real)
		if err != nil {
			return fmt.Errorf("write settings: %w", err)
		}
		path, mode = real, info.Mode().Perm()
	}
	temp, err := os.CreateTemp(filepath.Dir(path), ".kappactl-*.yaml")
	if err != nil {
		return fmt.Errorf("write settings: %w", err)
	}
	_, err = temp.Write(text)
	err = errors.Join(err, temp.Chmod(mode), temp.Sync(), temp.Close())
	if err == nil {
		err = os.Rename(temp.Name(), path)
	}
	if err != nil {
		return fmt.Errorf("write settings: %w", errors.Join(err, os.Remove(temp.Name())))
	}
	return nil
}
