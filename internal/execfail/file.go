package execfail

import (
	"io"

	"golang.org/x/sys/unix"
)

// headSize is how much of a file the kernel reads to tell its format: BINPRM_BUF_SIZE,
// 128 before Linux 5.1.
const headSize = 256

// regular is an open regular file.
type regular struct {
	fd   int
	size int64
}

// openRegular opens a file that was seen to be regular. Should it have been replaced
// since, O_NONBLOCK and O_NOCTTY keep a pipe or a terminal in its place from doing
// harm, and it is refused.
func openRegular(path string) (*regular, error) {
	fd, err := unix.Open(path, unix.O_RDONLY|unix.O_NONBLOCK|unix.O_NOCTTY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		unix.Close(fd)
		return nil, err
	}
	if st.Mode&unix.S_IFMT != unix.S_IFREG {
		unix.Close(fd)
		return nil, unix.EINVAL
	}
	return &regular{fd: fd, size: st.Size}, nil
}

func (r *regular) close() { unix.Close(r.fd) }

// ReadAt implements io.ReaderAt.
func (r *regular) ReadAt(b []byte, off int64) (int, error) {
	n := 0
	for n < len(b) {
		m, err := unix.Pread(r.fd, b[n:], off+int64(n))
		switch {
		case err == unix.EINTR:
		case err != nil:
			return n, err
		case m <= 0:
			return n, io.EOF
		default:
			n += m
		}
	}
	return n, nil
}

// head reads the part by which the kernel tells formats apart.
func (r *regular) head() (string, error) {
	b := make([]byte, headSize)
	n, err := r.ReadAt(b, 0)
	if err == io.EOF {
		err = nil
	}
	return string(b[:n]), err
}
