#include "store/feature.h"

#include "base/error.h"

int
feature_write(json_t *object)
{
	if (json_object_set_new(object, "needs_reader", json_array()) != 0 ||
	    json_object_set_new(object, "needs_writer", json_array()) != 0)
		return -1;
	return 0;
}

const char *
feature_unknown(const json_t *object, const char *field)
{
	const json_t *list = json_object_get(object, field);
	const char *name;

	if (list == NULL || (json_is_array(list) && json_array_size(list) == 0))
		return NULL;
	name = json_string_value(json_array_get(list, 0));
	return name != NULL ? name : "?";
}

int
feature_refuse(const char *name, const char *feature, struct error *error)
{
	error_set(error, ERROR_FAILED, CAUSE_FEATURE, name,
	    "needs the feature \"%s\", which this ckptsync does not know",
	    feature);
	return error_cure(error, "use a newer ckptsync");
}
