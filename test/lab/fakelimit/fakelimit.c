/*
 * A library to be preloaded that pretends another limit on open files than the real one,
 * so that programs can be watched at native speed under a limit that this machine does
 * not allow.
 *
 * FAKELIMIT=REAL=SHOWN: wherever the kernel says REAL, soft or hard, programs are told
 * SHOWN, and whoever sets more than REAL sets REAL. Every other limit is passed on as it
 * is, so an init that really lowers the limit is seen to have done so.
 *
 * Dynamically linked programs only. It uses nothing that glibc had not got in 2002, so
 * that it can be loaded by an older one than it was linked with.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <stddef.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <unistd.h>

extern char **environ;
extern long __sysconf(int name);

static unsigned long number(const char **s)
{
	unsigned long n = 0;

	for (; **s >= '0' && **s <= '9'; ++*s)
		n = 10 * n + (unsigned long)(**s - '0');
	return n;
}

/* Remembered once found: programs may empty their environment later. */
static int pretended(unsigned long *real, unsigned long *shown)
{
	static const char name[] = "FAKELIMIT=";
	static unsigned long known_real, known_shown;

	for (char **e = environ; !known_real && e && *e; e++) {
		size_t i = 0;
		while (name[i] && (*e)[i] == name[i])
			i++;
		if (name[i])
			continue;
		const char *value = *e + i;
		unsigned long r = number(&value);
		if (*value == '=') {
			value++;
			known_shown = number(&value);
			known_real = r;
		}
	}
	*real = known_real;
	*shown = known_shown;
	return known_real != 0;
}

static rlim_t show(rlim_t is)
{
	unsigned long real, shown;

	return pretended(&real, &shown) && is == real ? shown : is;
}

static rlim_t hide(rlim_t wanted)
{
	unsigned long real, shown;

	return pretended(&real, &shown) && wanted > real ? real : wanted;
}

int prlimit64(pid_t pid, __rlimit_resource_t resource, const struct rlimit64 *new, struct rlimit64 *old)
{
	struct rlimit64 set;

	if (new && resource == RLIMIT_NOFILE) {
		set.rlim_cur = hide(new->rlim_cur);
		set.rlim_max = hide(new->rlim_max);
		new = &set;
	}
	if (syscall(SYS_prlimit64, pid, resource, new, old) != 0)
		return -1;
	if (old && resource == RLIMIT_NOFILE) {
		old->rlim_cur = show(old->rlim_cur);
		old->rlim_max = show(old->rlim_max);
	}
	return 0;
}

/* On 64-bit machines, the only ones that this is for, both structures are the same. */
_Static_assert(sizeof(struct rlimit) == sizeof(struct rlimit64), "64-bit only");

int prlimit(pid_t pid, __rlimit_resource_t resource, const struct rlimit *new, struct rlimit *old)
{
	return prlimit64(pid, resource, (const struct rlimit64 *)new, (struct rlimit64 *)old);
}

int getrlimit64(__rlimit_resource_t resource, struct rlimit64 *limit)
{
	return prlimit64(0, resource, NULL, limit);
}

int getrlimit(__rlimit_resource_t resource, struct rlimit *limit)
{
	return prlimit64(0, resource, NULL, (struct rlimit64 *)limit);
}

int setrlimit64(__rlimit_resource_t resource, const struct rlimit64 *limit)
{
	return prlimit64(0, resource, limit, NULL);
}

int setrlimit(__rlimit_resource_t resource, const struct rlimit *limit)
{
	return prlimit64(0, resource, (const struct rlimit64 *)limit, NULL);
}

int getdtablesize(void)
{
	struct rlimit64 limit;

	return getrlimit64(RLIMIT_NOFILE, &limit) == 0 ? (int)limit.rlim_cur : 256;
}

long sysconf(int name)
{
	return name == _SC_OPEN_MAX ? getdtablesize() : __sysconf(name);
}
