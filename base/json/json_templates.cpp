// See json_templates.h.
#define MLTCP_JSON_TEMPLATES
#include "json_templates.h"
