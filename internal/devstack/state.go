package devstack

import (
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// state is the content of dev.json, which is kept over restarts.
type state struct {
	ClusterID    string `json:"cluster_id"`              // of the embedded broker
	KafkaPort    int    `json:"kafka_port,omitempty"`    // 0: not chosen yet
	PostgresPort int    `json:"postgres_port,omitempty"` // 0: not chosen yet
	HTTPPort     int    `json:"http_port,omitempty"`     // 0: not chosen yet
	// PostgresData is the location of the cluster: DIR/postgres, or another folder if the account that runs it cannot
	// reach DIR.
	PostgresData string `json:"postgres_data,omitempty"`
}

func statePath(dir string) string { return filepath.Join(dir, "dev.json") }

func readState(dir string) (state, error) {
	var s state
	text, err := os.ReadFile(statePath(dir))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return state{ClusterID: "kappactl-dev-" + rand.Text()[:12]}, nil
	case err != nil:
		return s, fmt.Errorf("read dev.json: %w", err)
	}
	if err := json.Unmarshal(text, &s); err != nil {
		return s, fmt.Errorf("read %s: %w; remove the folder %s to start again", statePath(dir), err, dir)
	}
	return s, nil
}

func (s state) write(dir string) error {
	text, err := json.MarshalIndent(s, "", "  ")
	if err != nil {
		return fmt.Errorf("write dev.json: %w", err)
	}
	return writeFile(statePath(dir), append(text, '\n'), 0o644)
}

// writeFile replaces a file atomically.
func writeFile(path string, text []byte, mode fs.FileMode) error {
	tmp, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+"-")
	if err != nil {
		return fmt.Errorf("write %s: %w", filepath.Base(path), err)
	}
	_, err = tmp.Write(text)
	err = errors.Join(err, tmp.Chmod(mode), tmp.Sync(), tmp.Close())
	if err == nil {
		err = os.Rename(tmp.Name(), path)
	}
	if err != nil {
		return fmt.Errorf("write %s: %w", filepath.Base(path), errors.Join(err, os.Remove(tmp.Name())))
	}
	return nil
}
