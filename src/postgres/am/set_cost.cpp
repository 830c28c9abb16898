#include "postgres/am/set_cost.h"

#include "postgres/am/compare_cost.h"
#include "postgres/am/index_options.h"
#include "postgres/client/index_state.h"
#include "protocol/calibration.h"
#include "protocol/rungs.h"
#include "protocol/similarity.h"

namespace pgwarp
{

namespace
{

// The comparison of a candidate costs as much as that of these rows: its elements lie elsewhere.
constexpr double candidate_rows = 5.0;
// Bytes of a row in the pages of the index beside its elements, and of an element.
constexpr double bytes_beside_elements = 20.0;
constexpr double element_bytes = 8.0;
// The elements of the sets in whose comparisons a method counts the comparison of signatures: the exact search of sets
// costs as much as that of signatures where they have 240 elements.
constexpr double signed_elements = 600.0;
// Hash functions of an index whose options give no number.
constexpr double usual_functions = 226.0;

// The number of elements of a usual row.
double elements_of_set(const IndexOptInfo* info, double functions)
{
    const double bytes = static_cast<double>(info->pages) * BLCKSZ / Max(1.0, info->tuples);
    return Max(1.0, (bytes - bytes_beside_elements - functions) / element_bytes);
}

// The number of candidates that a search for `found` rows compares, by the settings of the session or by the index's
// calibration.
double expected_candidates(const MethodDescription& method, Relation index, const ParameterList& settings, double found)
{
    const auto set = static_cast<double>(settings.get(effort_parameter(method), 0));
    if (set > 0) return Max(set, found);
    const IndexState state = read_index_state(index);
    const auto rows = static_cast<double>(state.rows);
    if (state.rows <= rung_ends[max_rungs - 1]) return rows;
    const EffortChoice choice = choose_effort(state.calibration, static_cast<uint32>(found), recall_asked(index));
    return Min(rows, Max(found, static_cast<double>(choice.effort)));
}

}  // namespace

bool is_of_sets(ElementType element)
{
    return element == ElementType::set || element == ElementType::minhash_set;
}

double compared_width_of_sets(ElementType element, const IndexOptInfo* info)
{
    return element == ElementType::set ? elements_of_set(info, 0) : signed_elements;
}

Cost candidate_cost(const MethodDescription& method, Relation index, const IndexOptInfo* info,
                    const SearchCostInput& input, double found)
{
    const auto functions = static_cast<double>(input.options.get(option_hashes, 0));
    const double width = elements_of_set(info, functions > 0 ? functions : usual_functions);
    return expected_candidates(method, index, input.settings, found) * candidate_rows * compare_cost(width);
}

}  // namespace pgwarp
