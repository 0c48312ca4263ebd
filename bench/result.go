package main

import (
	"encoding/json"
	"fmt"
	"os"
	"time"
)

// result holds the measurements of one run. -json writes it and -from reads it; tables and plots are made of it alone.
type result struct {
	Began      time.Time `json:"began"`
	CPUs       int       `json:"cpus"`
	Workers    int       `json:"workers"`
	Partitions int       `json:"partitions"`
	Codec      string    `json:"compression"`
	Commit     string    `json:"commit,omitempty"`

	Order    []string             `json:"order,omitempty"` // of the rows of Rounds
	Rounds   map[string][]measure `json:"rounds,omitempty"`
	Archived *archived            `json:"archive,omitempty"`
	Flip     *flipped             `json:"flip,omitempty"`
	Split    *split               `json:"split,omitempty"`
	Live     []following          `json:"live,omitempty"`
	Keys     []scale              `json:"keys,omitempty"`
	Growth   []scale              `json:"growth,omitempty"`
	Jobs     []crowd              `json:"jobs,omitempty"`
	Matrix   []cell               `json:"matrix,omitempty"`
	Failed   []failure            `json:"failed,omitempty"`
}

// failure is a part that gave no result, or not all of it.
type failure struct {
	Part  string `json:"part"`
	Error string `json:"error"`
}

// measure is one run of one variant.
type measure struct {
	Records int64              `json:"records"`
	Bytes   int64              `json:"bytes"`
	Replay  float64            `json:"replay_seconds,omitempty"` // from the frozen ranges to the last segment
	Built   float64            `json:"built_seconds,omitempty"`
	Planned float64            `json:"planned_seconds,omitempty"` // what plan said that replaying and building takes
	Served  float64            `json:"seconds"`
	CPU     float64            `json:"cpu_seconds"`
	Peak    int64              `json:"peak_bytes"`
	Tail    float64            `json:"seconds_from_end_of_replay,omitempty"`
	Steps   map[string]float64 `json:"steps,omitempty"`
}

// worked is how long replaying and building took, which plan estimates.
func (m measure) worked() float64 {
	return m.Replay + m.Steps["build fill"] + m.Steps["build index"] + m.Steps["build analyze"]
}

func (m measure) rate() float64 { return float64(m.Records) / m.Served }

// scale is a replay of so many records into so many keys.
type scale struct {
	Keys int64 `json:"keys"`
	measure
}

// cell is one of the matrix.
type cell struct {
	Codec      string `json:"compression"`
	Partitions int    `json:"partitions"`
	Size       int    `json:"record_bytes"`
	Uniform    bool   `json:"uniform,omitempty"` // one word again and again
	measure
}

func readResult(path string) (*result, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	var r result
	if err := json.Unmarshal(text, &r); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return &r, nil
}

// save writes the result to a file, whole or not at all.
func (r *result) save(path string) error {
	text, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return err
	}
	return replaceFile(path, append(text, '\n'))
}

// replaceFile puts text in the place of a file in one step.
func replaceFile(path string, text []byte) error {
	fresh := path + ".new"
	if err := os.WriteFile(fresh, text, 0o644); err != nil { //nolint:gosec // a document
		return err
	}
	return os.Rename(fresh, path)
}
