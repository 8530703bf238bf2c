#include <string.h>

#include "notice/lookout.h"
#include "notice/notice.h"

int
notice_cloud_parse(const char *text, enum notice_cloud *cloud)
{
	const struct lookout_cloud *row = lookout_find_name(
	    strcmp(text, "gcp") == 0 ? "google" : text);

	if (row != NULL)
		*cloud = row->cloud;
	else if (strcmp(text, "auto") == 0)
		*cloud = NOTICE_CLOUD_AUTO;
	else if (strcmp(text, "none") == 0)
		*cloud = NOTICE_CLOUD_NONE;
	else
		return -1;
	return 0;
}

uint64_t
notice_window(const struct notice_options *options, const char *source)
{
	const struct lookout_cloud *row = lookout_find_name(source);

	if (row == NULL)
		return 0;
	if (row->cloud == NOTICE_CLOUD_GOOGLE && options->google_notice != 0)
		return options->google_notice;
	return row->window;
}
