package archive

import (
	"context"
	"net/http"
	"os"
	"time"

	"github.com/minio/minio-go/v7/pkg/credentials"
)

// keysFor is how long an access key from the settings is used before it is read again: its secret may have been
// replaced.
const keysFor = 5 * time.Minute

// keys are those of the settings, else those of the first source that has one.
func (s S3) keys() *credentials.Credentials {
	if s.Keys != nil {
		return credentials.New(&settingKeys{read: s.Keys})
	}
	all := []credentials.Provider{&credentials.EnvAWS{}, &credentials.FileAWSCredentials{}}
	// AWS's own variable is for machines without such a service; the keys of a container come from another one.
	if os.Getenv("AWS_EC2_METADATA_DISABLED") != "true" || inContainer() {
		all = append(all, &credentials.IAM{Client: &http.Client{Timeout: 3 * time.Second}})
	}
	return credentials.NewChainCredentials(all)
}

// inContainer reports whether the environment names a service that gives the keys of a role to this container.
func inContainer() bool {
	for _, name := range []string{"AWS_CONTAINER_CREDENTIALS_RELATIVE_URI", "AWS_CONTAINER_CREDENTIALS_FULL_URI", "AWS_WEB_IDENTITY_TOKEN_FILE"} {
		if os.Getenv(name) != "" {
			return true
		}
	}
	return false
}

// settingKeys are those of the settings.
type settingKeys struct {
	credentials.Expiry
	read func(ctx context.Context) (id, secret string, err error)
}

func (k *settingKeys) RetrieveWithCredContext(*credentials.CredContext) (credentials.Value, error) {
	return k.Retrieve()
}

// Retrieve reads the key. The library gives no context.
func (k *settingKeys) Retrieve() (credentials.Value, error) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	id, secret, err := k.read(ctx)
	if err != nil {
		return credentials.Value{}, &keysError{err}
	}
	k.SetExpiration(time.Now().Add(keysFor), 0)
	return credentials.Value{AccessKeyID: id, SecretAccessKey: secret, SignerType: credentials.SignatureV4}, nil
}

// keysError is a source of the settings that gave no key.
type keysError struct{ err error }

func (e *keysError) Error() string { return e.err.Error() }
func (e *keysError) Unwrap() error { return e.err }
