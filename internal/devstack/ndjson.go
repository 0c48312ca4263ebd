package devstack

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
)

// maxLine is the longest accepted line, in bytes.
const maxLine = 16 << 20

// ndjson reads newline-delimited JSON objects and returns each unchanged, byte for byte.
type ndjson struct {
	path    string
	key     string
	file    *os.File
	scanner *bufio.Scanner
	line    int
}

func openNDJSON(path, key string, zipped bool) (*ndjson, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, refuse("", "%v", err)
	}
	var r io.Reader = f
	if zipped {
		if r, err = gzip.NewReader(f); err != nil {
			return nil, errors.Join(refuse("", "%s: not a gzip file", path), f.Close())
		}
	}
	s := bufio.NewScanner(r)
	s.Buffer(make([]byte, 1<<20), maxLine)
	return &ndjson{path: path, key: key, file: f, scanner: s}, nil
}

func (n *ndjson) close() error {
	if err := n.file.Close(); err != nil {
		return fmt.Errorf("close %s: %w", n.path, err)
	}
	return nil
}

func (n *ndjson) next(context.Context) ([]row, error) {
	var batch []row
	for len(batch) < batchRows && n.scanner.Scan() {
		n.line++
		line := n.scanner.Bytes()
		if n.line == 1 {
			line = bytes.TrimPrefix(line, []byte("\xef\xbb\xbf"))
		}
		if line = bytes.TrimSpace(line); len(line) == 0 {
			continue
		}
		r, err := n.row(line)
		if err != nil {
			return nil, err
		}
		batch = append(batch, r)
	}
	err := n.scanner.Err()
	switch {
	case errors.Is(err, bufio.ErrTooLong):
		return nil, refuse("", "%s:%d: the line is longer than %d MiB", n.path, n.line+1, maxLine>>20)
	case err != nil:
		return nil, fmt.Errorf("read %s: %w", n.path, err)
	case len(batch) == 0:
		return nil, io.EOF
	}
	return batch, nil
}

func (n *ndjson) row(line []byte) (row, error) {
	if line[0] == '[' && n.line == 1 {
		return row{}, refuse("write one object per line, for example with: jq -c '.[]'",
			"%s is a JSON array; NDJSON is required", n.path)
	}
	if line[0] != '{' || !json.Valid(line) {
		return row{}, refuse("write one object per line, for example with: jq -c .", "%s:%d: not a JSON object", n.path,
			n.line)
	}
	r := row{value: bytes.Clone(line)}
	if n.key == "" {
		return r, nil
	}
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(line, &fields); err != nil {
		return row{}, refuse("", "%s:%d: %v", n.path, n.line, err)
	}
	value, ok := fields[n.key]
	if !ok && n.line == 1 {
		return row{}, refuse("", "%s has no field %q in its first line", n.path, n.key)
	}
	var err error
	r.key, err = keyOf(value)
	return r, err
}

// keyOf returns the record key of a JSON value: a string without its quotes, null as no key, other values as written.
func keyOf(value json.RawMessage) ([]byte, error) {
	switch {
	case len(value) == 0 || string(value) == "null":
		return nil, nil
	case value[0] != '"':
		return value, nil
	}
	var s string
	if err := json.Unmarshal(value, &s); err != nil {
		return nil, fmt.Errorf("read the key: %w", err)
	}
	return []byte(s), nil
}
