// The backend's table of access methods: what differs between them. A new method is a new entry in methods.cpp.
#pragma once

#include "postgres/postgres_headers.h"

#include "numeric/metric.h"
#include "protocol/format.h"
#include "protocol/parameters.h"

extern "C" {
#include "nodes/pathnodes.h"
}

namespace pgwarp
{

enum class OptionKind { integer, boolean, choice };

// An option of CREATE INDEX ... WITH (...). Choices are stored by their position in `choices`.
struct MethodOption {
    const char* name;
    const char* description;
    OptionKind kind;
    int default_value;
    int minimum;
    int maximum;
    const char* const* choices;  // ends with nullptr
    const char* valid_values;    // shown when a choice is none of them
};

// What a cost function may look at: no page of the index.
struct SearchCostInput {
    double rows;
    ParameterList options;
    bool any_session;  // whatever this session has set
};

struct AccessMethod {
    Method method;
    const char* name;
    const MethodOption* options;
    int option_count;
    // Raises an error for options that make no sense together or for the column. dimensions: 0 where it is not known.
    void (*check_options)(const ParameterList& options, uint32 dimensions);
    // Adds the settings (GUCs) of this session. Whether they override the calibration.
    bool (*add_settings)(ParameterList* settings);
    // What results of an index with these options are.
    ResultKind (*result_kind)(const ParameterList& options);
    // Rows' worth of distance computations that one search takes.
    double (*compared_rows)(const SearchCostInput& input);
    // normal searches are complete and in the order of continuations
    bool complete;
    // Arrays with one row for each row of the index, besides the rows' addresses; ends with nullptr.
    const char* const* row_arrays;
    // The rows are stored as they come (array "vectors"): a merge needs no engine.
    bool stores_vectors;
    // Rows name each other by their numbers. So whoever adds some, or takes some out, needs all arrays.
    bool links_rows;
    // PostgreSQL passes these two no index: each method has its own.
    amoptions_function parse_options;
    amcostestimate_function estimate_cost;
};

inline constexpr int max_method_options = 8;

extern const AccessMethod access_methods[];
extern const int access_method_count;

const AccessMethod& access_method(Method method);
// The access method of an index; an error where the index is partitioned or of another access method.
const AccessMethod& access_method_of(Relation index);
// Raises the error for a relation that is not a pgwarp index.
[[noreturn]] void refuse_other_relation(const char* name);
// nullptr when the access method is not one of ours.
const AccessMethod* find_access_method(amoptions_function parse_options);
const AccessMethod* find_access_method(const IndexOptInfo* index);
const AccessMethod* find_access_method_by_name(const char* name);

}  // namespace pgwarp
