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

// role is the cluster's only role, a superuser.
const role = "kappactl"

// host is the address on which the server listens.
const host = "127.0.0.1"

// password returns the password in the pgpass file at path. If the file is missing, it creates it with a new password.
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

// writeSecret writes a file with mode 0600 atomically.
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
