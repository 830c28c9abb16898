#include "postgres/am/option_hints.h"

extern "C" {
#include "access/reloptions.h"
#include "commands/defrem.h"
#include "nodes/parsenodes.h"
}

namespace pgwarp
{

namespace
{

struct OtherName {
    const char* name;    // in pgvector
    const char* option;  // of a method
    const char* hint;
};

constexpr OtherName other_names[] = {
    {"m", "degree", "Write degree in place of pgvector's m, with twice its value: degree = 32 for m = 16."},
    {"ef_construction", "build_degree",
     "Leave pgvector's ef_construction out, or write build_degree, of which usually 1.5 times degree is enough."},
};

bool has_option(const MethodDescription& method, const char* name)
{
    for (const ValueDescription& option : method.options) {
        if (strcmp(option.name, name) == 0) return true;
    }
    return false;
}

const char* find_hint(const MethodDescription& method, const char* name)
{
    if (has_option(method, name)) return nullptr;
    for (const OtherName& other : other_names) {
        if (strcmp(other.name, name) == 0 && has_option(method, other.option)) return other.hint;
    }
    return nullptr;
}

}  // namespace

void refuse_option_of_pgvector(const MethodDescription& method, Datum options)
{
    if (DatumGetPointer(options) == nullptr) return;
    ListCell* cell;
    foreach (cell, untransformRelOptions(options)) {
        const char* name = lfirst_node(DefElem, cell)->defname;
        const char* hint = find_hint(method, name);
        if (hint == nullptr) continue;
        ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE), errmsg("unrecognized parameter \"%s\"", name),
                        errhint("%s", hint)));
    }
}

}  // namespace pgwarp
