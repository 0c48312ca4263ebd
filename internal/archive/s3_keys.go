package archive

import (
	"context"
	"net/http"
	"os"
	"time"

	"github.com/minio/minio-go/v7/pkg/credentials"
)

// keysFor is how long an access key from the settings is used before it is read again: its secret may have been replaced.
const keysFor = 5 * time.Minute

// keys are those of the settings, else those of the first source that has one.
func (s S3) keys() *credentials.Credentials {
	if s.Keys != nil {
		return credentials.New(&settingKeys{read: s.Keys})
	}
	all := []credentials.Provider{&credentials.EnvAWS{}, &credentials.FileAWSCredentials{}}
	if os.Getenv("AWS_EC2_METADATA_DISABLED") != "true" { // AWS's own variable for machines without such a service
		all = append(all, &credentials.IAM{Client: &http.Client{Timeout: 3 * time.Second}})
	}
	return credentials.NewChainCredentials(all)
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
