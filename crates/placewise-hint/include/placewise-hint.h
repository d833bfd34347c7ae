/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * placewise-hint.h: lets a program say where it, and what it creates, should
 * run. All of it is in this header.
 *
 *	if (placewise_hint("fork_spread", 1) < 0)
 *		perror("placewise_hint");
 *
 * A hint is for the calling thread; call it before the threads that are to
 * inherit it are created. It is heard by a running scx_placewise. Without one,
 * errno is ENOENT or ECONNREFUSED and nothing has changed: a program can
 * always try. Linux 6.9 or later (PIDFD_THREAD).
 */
#ifndef PLACEWISE_HINT_CLIENT_H
#define PLACEWISE_HINT_CLIENT_H

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

#define PLACEWISE_HINT_SOCKET "/run/placewise/hint.sock"

static inline int placewise_hint_connect(const char *path)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	int fd;

	if (strlen(path) >= sizeof(address.sun_path)) {
		errno = ENAMETOOLONG;
		return -1;
	}
	strcpy(address.sun_path, path);
	fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return -1;
	if (connect(fd, (struct sockaddr *)&address, sizeof(address)) < 0) {
		int error = errno;

		close(fd);
		errno = error;
		return -1;
	}
	return fd;
}

/* Sends @text with the pidfd @thread beside it. */
static inline ssize_t placewise_hint_send(int fd, const char *text, int thread)
{
	char space[CMSG_SPACE(sizeof(int))] = {0};
	struct iovec bytes = {(void *)text, strlen(text)};
	struct msghdr message = {
		.msg_iov = &bytes,
		.msg_iovlen = 1,
		.msg_control = space,
		.msg_controllen = sizeof(space),
	};
	struct cmsghdr *control = CMSG_FIRSTHDR(&message);

	control->cmsg_level = SOL_SOCKET;
	control->cmsg_type = SCM_RIGHTS;
	control->cmsg_len = CMSG_LEN(sizeof(int));
	memcpy(CMSG_DATA(control), &thread, sizeof(int));
	return sendmsg(fd, &message, MSG_NOSIGNAL);
}

/* 0, or the error that the answer names. */
static inline int placewise_hint_answer(int fd)
{
	char answer[256];
	ssize_t length = recv(fd, answer, sizeof(answer) - 1, 0);

	if (length < 0)
		return errno;
	answer[length] = '\0';
	if (!strcmp(answer, "ok"))
		return 0;
	if (!strncmp(answer, "error ", 6) && atoi(answer + 6) > 0)
		return atoi(answer + 6);
	return EPROTO;
}

/*
 * Gives the thread @tid, 0 for the calling one, a hint in place of the one it
 * had: names joined by plus signs ("fork_affine", "fork_spread",
 * "wake_affine", "wake_hold"), or "none". With @inherit its children get it
 * too. 0, or -1 and errno: EINVAL no such hint, EPERM not yours, ESRCH no such
 * thread.
 */
static inline int placewise_hint_thread(const char *socket_path, pid_t tid,
					const char *hint, int inherit)
{
	const unsigned int pidfd_thread = 0200; /* PIDFD_THREAD, O_EXCL */
	char text[128];
	int thread, fd, error;

	if (snprintf(text, sizeof(text), "set %s %s", hint,
		     inherit ? "children" : "self") >= (int)sizeof(text)) {
		errno = EINVAL;
		return -1;
	}
	if (!tid)
		tid = (pid_t)syscall(SYS_gettid);
	thread = (int)syscall(SYS_pidfd_open, tid, pidfd_thread);
	if (thread < 0)
		return -1;
	fd = placewise_hint_connect(socket_path);
	if (fd < 0) {
		error = errno;
	} else {
		error = placewise_hint_send(fd, text, thread) < 0
				? errno
				: placewise_hint_answer(fd);
		close(fd);
	}
	close(thread);
	errno = error;
	return error ? -1 : 0;
}

/* The calling thread, and with @inherit its children. */
static inline int placewise_hint(const char *hint, int inherit)
{
	return placewise_hint_thread(PLACEWISE_HINT_SOCKET, 0, hint, inherit);
}

#endif
