// Conversions between vectors of float and of binary16 with the same bits on every target. Included once for each
// target.
#if defined(PGWARP_NUMERIC_HALF_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef PGWARP_NUMERIC_HALF_INL_H_
#undef PGWARP_NUMERIC_HALF_INL_H_
#else
#define PGWARP_NUMERIC_HALF_INL_H_
#endif

#include <hwy/highway.h>

// Without native conversion Highway's emulation truncates and has no infinities; those targets use the code below.
#undef PGWARP_NATIVE_HALF
#if (HWY_ARCH_X86 && HWY_TARGET <= HWY_AVX2) || HWY_TARGET == HWY_NEON
#define PGWARP_NATIVE_HALF 1
#else
#define PGWARP_NATIVE_HALF 0
#endif

HWY_BEFORE_NAMESPACE();
namespace pgwarp::HWY_NAMESPACE
{
namespace hn = hwy::HWY_NAMESPACE;
namespace
{

// Convert the bits of halves to floats; the conversion is exact.
template <class D>
HWY_INLINE hn::Vec<D> half_to_float(D floats, hn::Vec<hn::Rebind<std::uint16_t, D>> bits)
{
#if PGWARP_NATIVE_HALF
    return hn::PromoteTo(floats, hn::BitCast(hn::Rebind<hwy::float16_t, D>(), bits));
#else
    const hn::RebindToUnsigned<D> words;
    const auto wide = hn::PromoteTo(words, bits);
    const auto magnitude = hn::And(wide, hn::Set(words, 0x7FFFU));
    // As float bits the exponent is 112 too small; the product corrects it and normalises subnormals.
    const auto value = hn::Mul(hn::BitCast(floats, hn::ShiftLeft<13>(magnitude)), hn::Set(floats, 0x1p112F));
    const auto special = hn::Or(hn::ShiftLeft<13>(magnitude), hn::Set(words, 0x7F800000U));
    const auto is_special = hn::Gt(magnitude, hn::Set(words, 0x7BFFU));
    const auto result = hn::IfThenElse(is_special, special, hn::BitCast(words, value));
    return hn::BitCast(floats, hn::Or(result, hn::ShiftLeft<16>(hn::Sub(wide, magnitude))));
#endif
}

// Convert floats to the bits of the nearest halves, ties to even; values that are too large become infinity.
template <class D>
HWY_INLINE hn::Vec<hn::Rebind<std::uint16_t, D>> float_to_half(D floats, hn::Vec<D> value)
{
    const hn::Rebind<std::uint16_t, D> halves;
#if PGWARP_NATIVE_HALF
    (void)floats;
    return hn::BitCast(halves, hn::DemoteTo(hn::Rebind<hwy::float16_t, D>(), value));
#else
    const hn::RebindToUnsigned<D> words;
    const auto all = hn::BitCast(words, value);
    const auto magnitude = hn::And(all, hn::Set(words, 0x7FFFFFFFU));
    const auto sign = hn::ShiftRight<16>(hn::Sub(all, magnitude));
    // Adding 0.5, whose last place is 2^-24, makes the adder round subnormal results.
    const auto shifted = hn::Add(hn::BitCast(floats, magnitude), hn::Set(floats, 0.5F));
    const auto subnormal = hn::Sub(hn::BitCast(words, shifted), hn::Set(words, 0x3F000000U));
    const auto odd = hn::And(hn::ShiftRight<13>(magnitude), hn::Set(words, 1U));
    const auto rounded = hn::Add(hn::Add(magnitude, odd), hn::Set(words, 0xFFFU));
    const auto normal = hn::ShiftRight<13>(hn::Sub(rounded, hn::Set(words, 112U << 23)));
    const auto payload = hn::And(hn::ShiftRight<13>(magnitude), hn::Set(words, 0x3FFU));
    const auto not_a_number = hn::Or(payload, hn::Set(words, 0x7E00U));

    auto result = hn::IfThenElse(hn::Gt(hn::Set(words, 0x38800000U), magnitude), subnormal, normal);
    result = hn::IfThenElse(hn::Gt(magnitude, hn::Set(words, 0x477FEFFFU)), hn::Set(words, 0x7C00U), result);
    result = hn::IfThenElse(hn::Gt(magnitude, hn::Set(words, 0x7F800000U)), not_a_number, result);
    return hn::TruncateTo(halves, hn::Or(result, sign));
#endif
}

}  // namespace
}  // namespace pgwarp::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // PGWARP_NUMERIC_HALF_INL_H_
