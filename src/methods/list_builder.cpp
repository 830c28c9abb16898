// The build of an index that holds its lists unchanged.
#include "methods/list_builder.h"

#include <algorithm>

#include "methods/rows/stored_lists.h"

namespace pgwarp
{

namespace
{

class ListBuilder : public Builder
{
public:
    explicit ListBuilder(const ParameterList& options) : options_(options) {}

    void run(RowBuffer& rows, const BuildProgress& progress, ThreadPool&) override
    {
        progress.advance("writing rows", 0, rows.size());
        rows_ = rows.rows();
    }
    std::vector<ArrayShape> arrays() const override { return list_arrays(rows_); }
    void read(const std::string& array, std::uint64_t offset, std::span<std::byte> out) const override
    {
        if (!read_list_array(rows_, array, offset, out)) throw BadRequest("unknown array of lists");
    }
    Calibration calibration() const override
    {
        Calibration calibration;
        calibration.count = 1;
        std::fill_n(calibration.points[0].recall, 4, 1.0F);
        return calibration;
    }
    ParameterList effective_options() const override { return options_; }

private:
    ParameterList options_;
    RowView rows_;
};

}  // namespace

std::unique_ptr<Builder> make_list_builder(const ParameterList& effective_options)
{
    return std::make_unique<ListBuilder>(effective_options);
}

}  // namespace pgwarp
