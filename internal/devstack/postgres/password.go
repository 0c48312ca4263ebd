package postgres

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// role is the cluster's one role, a superuser.
const role = "kappactl"

// host is where the server listens.
const host = "127.0.0.1"

// password returns the password in the pgpass file at path, which is made with a new one when it is missing.
func password(path string) (string, error) {
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		secret := rand.Text()
		line := fmt.Sprintf("%s:*:*:%s:%s\n", host, role, secret)
		if err := writeSecret(path, line); err != nil {
			return "", err
		}
		return secret, nil
	}
	if err != nil {
		return "", fmt.Errorf("read the password file: %w", err)
	}
	fields := strings.Split(strings.TrimSpace(string(text)), ":")
	if len(fields) != 5 || fields[4] == "" {
		return "", fmt.Errorf("%s is not a pgpass file of this cluster", path)
	}
	return fields[4], nil
}

// writeSecret writes a 0600 file whole or not at all.
func writeSecret(path, text string) error {
	tmp, err := os.CreateTemp(filepath.Dir(path), ".pgpass-") // mode 0600
	if err != nil {
		return fmt.Errorf("write the password file: %w", err)
	}
	_, err = tmp.WriteString(text)
	err = errors.Join(err, tmp.Sync(), tmp.Close())
	if err == nil {
		err = os.Rename(tmp.Name(), path)
	}
	if err != nil {
		return fmt.Errorf("write the password file: %w", errors.Join(err, os.Remove(tmp.Name())))
	}
	return nil
}
