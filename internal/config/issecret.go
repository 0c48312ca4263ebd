package config

import "strings"

// secretVariables are the environment variables whose whole value, or a part of it, the settings keep as a Secret.
func secretVariables() []string {
	return []string{
		"KAPPACTL_DSN", "PGPASSWORD", "KAPPACTL_KAFKA_SASL_PASSWORD", "KAPPACTL_ARCHIVE_S3_SECRET_ACCESS_KEY",
		hookSecret,
	}
}

// secretWords are the parts of a name that make it a secret's.
func secretWords() []string {
	return []string{
		"PASSWORD", "PASSWD", "PASSPHRASE", "SECRET", "TOKEN", "CREDENTIAL", "PRIVATE_KEY", "DSN", "API_KEY",
		"APIKEY", "ACCESS_KEY",
	}
}

// A shorter password is part of too many other texts to be looked for in them.
const shortestPart = 6

// IsSecret reports whether a variable holds a secret: its name is that of a secret of the settings or contains a word
// such as PASSWORD or TOKEN, in any case; or its value is or contains a secret of the settings in the environment; or
// it is a connection string with a password.
func IsSecret(name, value string, env func(string) string) bool {
	upper := strings.ToUpper(name)
	for _, word := range secretWords() {
		if strings.Contains(upper, word) {
			return true
		}
	}
	for _, known := range secretVariables() {
		secret := env(known)
		if upper == known || value != "" && value == secret || len(secret) >= shortestPart &&
			strings.Contains(value, secret) {
			return true
		}
	}
	return hasPassword(value)
}
