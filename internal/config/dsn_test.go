package config

import (
	"fmt"
	"strings"
	"testing"
)

func TestNoSpellingOfAConnectionStringShowsItsPassword(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		"postgres://app:sesame@host/db",
		"postgres://app:ses/ame@host/db",
		"postgres://app:ses?ame@host/db",
		"postgres://app:ses#ame@host/db",
		"postgres://app:ses@ame@host/db",
		"postgres://app:ses%zzame@host/db",
		"postgres://app:12/sesame@host/db",
		"postgres://app:ses ame@host/db",
		"postgres://app:ses:ame@host/db?application_name=a@b",
		"postgresql://host/db?user=app&password=ses@ame",
		"postgresql://host/db?user=app&pass%77ord=sesame",
		"postgresql://host/db?user=app&sslPassword=sesame&sslmode=require",
		"host=h password=sesame dbname=d",
		"host=h password = 'ses ame' dbname=d",
		`host=h password='ses\'ame' dbname=d`,
		`host=h password=ses\ ame dbname=d`,
		"host=h PASSWORD=sesame",
		"host=h sslpassword=sesame",
	} {
		shown := fmt.Sprintf("%s %v %#v", DSN(text), DSN(text), DSN(text))
		if strings.Contains(shown, "ses") || strings.Contains(shown, "ame@") || strings.Contains(shown, " ame") || strings.Contains(shown, "'ame") {
			t.Errorf("%s is shown as %s", text, shown)
		}
		if !strings.Contains(shown, hidden) {
			t.Errorf("%s is shown as %s, without a sign that a password was there", text, shown)
		}
		if !hasPassword(text) {
			t.Errorf("%s: its password is not seen", text)
		}
		if _, err := parseDSN(text); err != nil && (strings.Contains(err.Error(), "ses") || strings.Contains(err.Error(), "ame@")) {
			t.Errorf("%s: the refusal shows the password: %v", text, err)
		}
	}
}

func TestAnUnescapedPasswordIsRefusedWithItsSpelling(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"postgres://app:ses/ame@host/db":               `%2F for "/"`,
		"postgres://app:12/ame@host/db":                `%2F for "/"`,
		"postgres://app:ses#ame@host/db":               `%23 for "#"`,
		"postgres://app:ses?ame@host/db":               `%3F for "?"`,
		"postgres://app:100%@host/db":                  `%25 for "%"`,
		"postgres://app:ses ame@host/db":               `%20 for " "`,
		"postgres://app:ses@ame@host:5432/db":          `%40 for "@"`,
		"postgres://app@tenant@host/db":                `%40 for "@"`,
		"postgres://app:a/b@c@host/db?sslmode=require": `%2F for "/", %40 for "@"`,
	} {
		if _, err := parseDSN(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %s", text, err, want)
		}
	}
	for _, text := range []string{
		"postgres://app:ses%2Fame@host/db", "postgres://app@host:5432/db?application_name=a@b", "postgres://host/db", "host=h dbname=d",
		"postgres://app:a:b@host/db", "postgres:///db?host=/run/postgresql",
	} {
		if _, err := parseDSN(text); err != nil {
			t.Errorf("%s: %v", text, err)
		}
	}
}
