//! Short names of kernels: the function's name, and the template argument that tells what it does.
//!
//! `void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<float>, …>(int, …)` is
//! `elementwise add<float>`. Return type, namespaces and parameters go; so do words that every kernel of a
//! library has. Where that makes two names of one table equal, [`unique`] adds the words that differ.

use rustc_hash::{FxHashMap, FxHashSet};

/// The longest name that it parses: templates can blow up beyond all use.
const READ_MAX: usize = 16 * 1024;
/// How deep it follows template arguments: PyTorch's functors lie four deep.
const DEPTH_MAX: usize = 12;
/// A word longer than this names its tiles, types and stages one after the other (CUTLASS, cuDNN).
const WORD_MAX: usize = 40;

/// The short name of a kernel from its whole, demangled name.
pub fn short(full: &str) -> String {
    if full.len() > READ_MAX {
        return full.chars().take(WORD_MAX).collect();
    }
    if !full.contains(['<', '(', ':', ' ']) {
        return condense(full);
    }
    let normal = full.replace("operator ()", "operator()");
    let mut parts = path(without_return_type(&normal));
    let Some(function) = parts.pop().filter(|part| !part.name.is_empty()) else {
        return full.to_owned();
    };
    let arguments = split(function.arguments, b',');
    let name = function.name;
    // "Kernel", "Kernel2" and "device_kernel" of CUTLASS say nothing; their only argument says all.
    let is_generic = |name: &str| {
        let name = name.trim_end_matches(|c: char| c.is_ascii_digit());
        name.eq_ignore_ascii_case("kernel")
            || ["device_kernel", "GemmKernel", "run_global"].contains(&name)
    };
    if let Some(agent) = arguments.first().filter(|_| name == "_kernel_agent") {
        return of_agent(agent);
    }
    if is_generic(name) {
        return match arguments.first().filter(|a| !is_plain(a)) {
            Some(argument) => {
                let mut parts = path(argument);
                // "enable_sm90_or_later" says where what it holds may run.
                while let Some(inner) = parts
                    .last()
                    .filter(|it| it.name.starts_with("enable_"))
                    .and_then(|it| split(it.arguments, b',').first().copied())
                {
                    parts = path(inner);
                }
                let last = parts.pop().unwrap_or_default();
                let space = parts.pop().filter(|_| is_generic(last.name));
                condense(space.unwrap_or(last).name)
            }
            None => match parts.last() {
                Some(space) if space.arguments.is_empty() => format!("{}::{name}", space.name),
                _ => name.to_owned(),
            },
        };
    }
    match arguments.iter().find_map(|a| telling(a, 0)) {
        Some(telling) => format!("{} {telling}", bare_base(name)),
        None => condense(name),
    }
}

/// What an agent of Thrust does: its algorithm and part of it, or the algorithm with the function that it calls for each.
fn of_agent(agent: &str) -> String {
    let algorithm = |parts: &[PathPart<'_>]| {
        let space = parts.iter().rev().find_map(|it| it.name.strip_prefix("__"));
        space.unwrap_or_default().to_owned()
    };
    let parts = path(agent);
    let last = parts.last().copied().unwrap_or_default();
    if last.name != "ParallelForAgent" {
        let part = last.name.strip_suffix("Agent").unwrap_or(last.name);
        return format!("{} {part}", algorithm(&parts)).trim().to_owned();
    }
    let arguments = split(last.arguments, b',');
    let called = path(arguments.first().copied().unwrap_or_default());
    let name = match called.last().map(|it| it.name) {
        Some(name) if name != "functor" => name.strip_suffix("_f").unwrap_or(name).to_owned(),
        _ => algorithm(&called),
    };
    let given = called.last().map(|it| split(it.arguments, b','));
    let telling = given.into_iter().flatten().find_map(|it| telling(it, 0));
    telling.map_or(name.clone(), |it| format!("{name} {it}"))
}

/// A short name for each of `fulls`. They differ wherever the whole names do.
pub fn unique(fulls: &[&str]) -> Vec<String> {
    let mut names: Vec<String> = fulls.iter().map(|full| short(full)).collect();
    let mut groups: FxHashMap<&str, Vec<usize>> = FxHashMap::default();
    for (i, name) in names.iter().enumerate() {
        groups.entry(name).or_default().push(i);
    }
    let mut clashing: Vec<Vec<usize>> = groups.into_values().filter(|g| g.len() > 1).collect();
    clashing.sort_unstable();
    for group in clashing {
        let members: Vec<&str> = group.iter().map(|&i| fulls[i]).collect();
        for (&i, told) in group
            .iter()
            .zip(distinguish(&names[group[0]].clone(), &members))
        {
            names[i] = told;
        }
    }
    names
}

/// `short` with as many words behind it as tell the whole names apart.
fn distinguish(short: &str, fulls: &[&str]) -> Vec<String> {
    /// More words than this are no short name any more.
    const WORDS_MAX: usize = 4;
    let words: Vec<Vec<&str>> = fulls.iter().map(|full| words(full)).collect();
    let mut holders: FxHashMap<&str, usize> = FxHashMap::default();
    for list in &words {
        let mut seen = FxHashSet::default();
        for word in list.iter().filter(|word| seen.insert(**word)) {
            *holders.entry(word).or_default() += 1;
        }
    }
    let whole: FxHashSet<&&str> = fulls.iter().collect();
    let differing = |list: &Vec<&str>, most: usize| {
        let mut seen = FxHashSet::default();
        list.iter()
            .filter(|word| holders.get(**word).is_some_and(|&n| n < fulls.len()))
            .filter(|word| seen.insert(**word))
            .take(most)
            .map(|word| format!(" {word}"))
            .collect::<String>()
    };
    for most in 1..=WORDS_MAX {
        let told: Vec<String> = words
            .iter()
            .map(|list| format!("{short}{}", differing(list, most)))
            .collect();
        if told.iter().collect::<FxHashSet<_>>().len() == whole.len() {
            return told;
        }
    }
    by_position(short, &words, WORDS_MAX)
        .filter(|told| told.iter().collect::<FxHashSet<_>>().len() == whole.len())
        .unwrap_or_else(|| match fulls.iter().any(|it| it.len() > WORD_MAX) {
            true => (1..=fulls.len())
                .map(|at| format!("{short} #{at}"))
                .collect(),
            false => fulls.iter().map(|it| (*it).to_owned()).collect(),
        })
}

/// `short` with what stands at the places where the names differ, if those are few. So "reduce true" and "reduce false"
/// differ, though both names have both words among their template arguments.
fn by_position(short: &str, words: &[Vec<&str>], most: usize) -> Option<Vec<String>> {
    let (first, others) = words.split_first()?;
    if others.iter().any(|list| list.len() != first.len()) {
        return None;
    }
    let differ = |&i: &usize| others.iter().any(|list| list[i] != first[i]);
    let places: Vec<usize> = (0..first.len()).filter(differ).collect();
    let tell = |list: &Vec<&str>| {
        let words = places.iter().map(|&i| format!(" {}", list[i]));
        format!("{short}{}", words.collect::<String>())
    };
    (places.len() <= most).then(|| words.iter().map(tell).collect())
}

/// The words of a name without its parameters, in order.
fn words(full: &str) -> Vec<&str> {
    let head = without_parameters(without_return_type(full));
    let pieces = head.split(|c: char| !c.is_alphanumeric() && c != '_');
    let mut words = Vec::new();
    for piece in pieces.filter(|piece| !piece.is_empty()) {
        if piece.len() > WORD_MAX {
            words.extend(piece.split('_').filter(|word| !word.is_empty()));
        } else {
            words.push(piece);
        }
    }
    words
}

/// What a template argument tells about the kernel: "add<float>" for a functor, for a lambda's function, and for what
/// either wraps. `None` for sizes, types and containers.
fn telling(argument: &str, depth: usize) -> Option<String> {
    if depth > DEPTH_MAX {
        return None;
    }
    let argument = without_return_type(argument.trim());
    let parts = path(argument);
    let lambda = parts.iter().rev().find(|part| {
        let marks = ["{lambda", "[lambda", "'lambda"];
        marks.iter().any(|mark| part.name.starts_with(mark))
    });
    let owner = match lambda {
        // The function that holds the lambda. All before it are namespaces, all after it its lambdas.
        Some(_) => parts
            .iter()
            .find(|p| p.has_parameters || !p.arguments.is_empty()),
        None => parts.last(),
    }?;
    let arguments = split(owner.arguments, b',');
    if let Some(inner) = arguments.iter().find_map(|a| telling(a, depth + 1)) {
        return Some(inner);
    }
    if lambda.is_none() && !is_functor(owner.name) {
        return None;
    }
    let of_lambda = lambda.and_then(|part| {
        let open = part.name.find('(')? + 1;
        let end = part.name[open..].find([',', ')'])?;
        Some(&part.name[open..open + end])
    });
    let kind = arguments
        .iter()
        .map(|a| a.trim())
        .find(|a| is_plain(a) && !a.starts_with(|c: char| !c.is_alphabetic()))
        .or(of_lambda)
        .and_then(|kind| kind.rsplit("::").next())
        .filter(|kind| !kind.is_empty());
    let name = bare_functor(owner.name);
    Some(kind.map_or_else(|| name.to_owned(), |kind| format!("{name}<{kind}>")))
}

fn is_functor(name: &str) -> bool {
    const OF_STD: [&str; 6] = ["plus", "minus", "multiplies", "divides", "less", "greater"];
    let lower = name.to_ascii_lowercase();
    lower.contains("functor")
        || name.ends_with("Op")
        || name.ends_with("Ops")
        || OF_STD.contains(&name)
}

/// Types of the language and numbers: they tell nothing about the work.
fn is_plain(text: &str) -> bool {
    const TYPES: &str = "BFloat16 Half float double int long bool char short unsigned signed void float2 float4 \
        __half __nv_bfloat16";
    let text = text.trim();
    let first = text.split([' ', '*', '&']).next().unwrap_or_default();
    let bare = first.rsplit("::").next();
    TYPES.split(' ').any(|it| Some(it) == bare)
        || text.starts_with(|c: char| c.is_ascii_digit() || "(-".contains(c))
}

/// A kernel's name before its telling argument.
fn bare_base(name: &str) -> &str {
    let name = name.strip_suffix("_kernel").unwrap_or(name);
    ["vectorized_", "unrolled_"]
        .iter()
        .find_map(|lead| {
            name.strip_prefix(lead)
                .filter(|rest| rest.starts_with("elementwise"))
        })
        .unwrap_or(name)
}

fn bare_functor(name: &str) -> &str {
    const LEADS: [&str; 3] = ["CUDAFunctor_", "CUDAFunctor", "launch_"];
    const ENDS: &str = "_impl _cuda _kernel _functor Functor CUDAKernelImpl Ops";
    let is_name = |it: &&str| !it.is_empty();
    let mut name = name;
    for lead in LEADS {
        name = name.strip_prefix(lead).filter(is_name).unwrap_or(name);
    }
    for end in ENDS.split(' ') {
        name = name.strip_suffix(end).filter(is_name).unwrap_or(name);
    }
    name
}

/// The first facts in a library's long name: family, operation, tile.
fn condense(name: &str) -> String {
    const TELLING: &str = "cutlass xmma cudnn gemm fprop dgrad wgrad conv attention fmha split";
    if name.len() <= WORD_MAX || !name.contains('_') {
        return name.to_owned();
    }
    let mut has_tile = false;
    let kept: Vec<&str> = name
        .split('_')
        .filter_map(|word| {
            let size = word.trim_start_matches("tilesize");
            let is_tile = size.contains('x')
                && size
                    .split('x')
                    .all(|n| !n.is_empty() && n.bytes().all(|b| b.is_ascii_digit()));
            if is_tile {
                return (!std::mem::replace(&mut has_tile, true)).then_some(size);
            }
            TELLING
                .split(' ')
                .any(|telling| word.contains(telling))
                .then_some(word)
        })
        .collect();
    if kept.len() < 2 {
        return name.to_owned();
    }
    kept.join("_")
}

/// A part of a path: `name<arguments>(parameters)`.
#[derive(Clone, Copy, Debug, Default)]
struct PathPart<'t> {
    name: &'t str,
    arguments: &'t str,
    has_parameters: bool,
}

/// The parts of a path, between "::".
fn path(text: &str) -> Vec<PathPart<'_>> {
    split(text, b':').into_iter().map(part).collect()
}

fn part(text: &str) -> PathPart<'_> {
    let text = text.trim();
    // Names that are brackets: "{lambda(int)#1}", "(anonymous namespace)", "<unnamed>".
    if text.starts_with(['{', '[', '\'', '(', '<']) {
        return PathPart {
            name: text,
            ..PathPart::default()
        };
    }
    let open = (0..text.len())
        .filter(|&i| text.is_char_boundary(i))
        .find(|&i| matches!(text.as_bytes()[i], b'<' | b'(') && !is_in_operator(text, i));
    let Some(open) = open else {
        return PathPart {
            name: text,
            ..PathPart::default()
        };
    };
    let name = text[..open].trim();
    if text.as_bytes()[open] == b'(' {
        return PathPart {
            name,
            has_parameters: true,
            ..PathPart::default()
        };
    }
    let close = closing(text, open).unwrap_or(text.len());
    PathPart {
        name,
        arguments: &text[open + 1..close],
        has_parameters: text[close..].contains('('),
    }
}

/// Whether the bracket at `i` is a part of an operator's name: "operator()", "operator<".
fn is_in_operator(text: &str, i: usize) -> bool {
    let before = &text.as_bytes()[..i];
    // "operator()", "operator<", "operator<=": up to two signs may stand between.
    (0..=2.min(i)).any(|signs| {
        let (word, signs) = before.split_at(i - signs);
        word.ends_with(b"operator")
            && signs != b"()"
            && signs.iter().all(|sign| b"<>=-(".contains(sign))
    })
}

/// Pieces of `text` between commas or "::" that stand in no bracket.
fn split(text: &str, at: u8) -> Vec<&str> {
    let bytes = text.as_bytes();
    let mut pieces = Vec::new();
    let (mut depth, mut start, mut i) = (0usize, 0, 0);
    while i < bytes.len() {
        step(bytes, i, &mut depth);
        let is_end =
            depth == 0 && bytes[i] == at && (at != b':' || bytes.get(i + 1) == Some(&b':'));
        if is_end {
            pieces.push(&text[start..i]);
            i += usize::from(at == b':');
            start = i + 1;
        }
        i += 1;
    }
    if start < text.len() {
        pieces.push(&text[start..]);
    }
    pieces
}

/// Keeps count of open brackets.
fn step(bytes: &[u8], i: usize, depth: &mut usize) {
    match bytes[i] {
        b'<' | b'(' | b'[' | b'{' => *depth += 1,
        // The arrow of a trailing return type closes nothing.
        b'>' if i > 0 && bytes[i - 1] == b'-' => {}
        b'>' | b')' | b']' | b'}' => *depth = depth.saturating_sub(1),
        _ => {}
    }
}

/// The bracket that closes the one at `open`.
fn closing(text: &str, open: usize) -> Option<usize> {
    let bytes = text.as_bytes();
    let mut depth = 0;
    (open..bytes.len()).find(|&i| {
        step(bytes, i, &mut depth);
        depth == 0
    })
}

/// What follows the last space that stands in no bracket and before the function's parameters.
fn without_return_type(text: &str) -> &str {
    let bytes = text.as_bytes();
    let head = without_parameters(text).len();
    let (mut depth, mut start) = (0usize, 0);
    if head == text.len() && !text.starts_with("void ") {
        return text;
    }
    for i in 0..head {
        step(bytes, i, &mut depth);
        if depth == 0
            && bytes[i] == b' '
            && !text[i..].starts_with(" const")
            && !text[..i].ends_with(" const")
        {
            start = i + 1;
        }
    }
    &text[start..]
}

/// The text before its last bracket of parameters; all of it where it has none.
fn without_parameters(text: &str) -> &str {
    let bytes = text.as_bytes();
    let (mut depth, mut at) = (0usize, None);
    for (i, byte) in bytes.iter().enumerate() {
        if depth == 0 && *byte == b'(' && !is_in_operator(text, i) {
            at = Some(i);
        }
        step(bytes, i, &mut depth);
    }
    match at {
        // "(anonymous namespace)::kernel" has none.
        Some(at)
            if at > 0 && closing(text, at).is_some_and(|c| !text[c + 1..].starts_with("::")) =>
        {
            &text[..at]
        }
        _ => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kernels_get_the_name_that_people_call_them() {
        let cases = [
            ("matmul_tiled", "matmul_tiled"),
            (
                "void cutlass::device_kernel<flash::enable_sm90_or_later<flash::FlashAttnFwdSm90<flash::CollectiveMainloopFwdSm90<(int)2, cute::tuple<cute::C<(int)1>>, (int)128, cutlass::bfloat16_t, float, cutlass::arch::Sm90, (bool)1>, flash::Epilogue<(int)1>>>>(T1::Params)",
                "FlashAttnFwdSm90",
            ),
            (
                "void thrust::cuda_cub::core::_kernel_agent<thrust::cuda_cub::__merge_sort::PartitionAgent<thrust::device_ptr<int>, long, IndexCompare_int>, bool, thrust::device_ptr<int>, int*, long, unsigned long, long*, IndexCompare_int, long, int>(bool, thrust::device_ptr<int>, int*, long, unsigned long, long*, IndexCompare_int, long, int)",
                "merge_sort Partition",
            ),
            (
                "void thrust::cuda_cub::core::_kernel_agent<thrust::cuda_cub::__parallel_for::ParallelForAgent<thrust::cuda_cub::__fill::functor<double*, double>, long>, thrust::cuda_cub::__fill::functor<double*, double>, long>(thrust::cuda_cub::__fill::functor<double*, double>, long)",
                "fill",
            ),
            (
                "void thrust::cuda_cub::core::_kernel_agent<thrust::cuda_cub::__parallel_for::ParallelForAgent<thrust::cuda_cub::for_each_f<thrust::detail::normal_iterator<thrust::device_ptr<Data> >, thrust::detail::wrapped_function<main::{lambda(Data&)#1}, void> >, long>, thrust::detail::wrapped_function<main::{lambda(Data&)#1}, void>, long>(thrust::detail::wrapped_function<main::{lambda(Data&)#1}, void>, long)",
                "for_each",
            ),
            (
                "void fused_moe::run_global<fused_moe::Fused_Moe_Kernel_sm80<cutlass::bfloat16_t, cutlass::bfloat16_t, cutlass::bfloat16_t, 32, 128, 64, 3, (fused_moe::Activation_Type)3> >(fused_moe::Fused_Moe_Kernel_sm80<cutlass::bfloat16_t, cutlass::bfloat16_t, cutlass::bfloat16_t, 32, 128, 64, 3, (fused_moe::Activation_Type)3>::Params)",
                "Fused_Moe_Kernel_sm80",
            ),
            (
                "void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<float>, at::detail::Array<char*, 3> >(int, at::native::CUDAFunctor_add<float>, at::detail::Array<char*, 3>)",
                "elementwise add<float>",
            ),
            (
                "void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<c10::BFloat16>, std::array<char*, 3ul> >(int, at::native::CUDAFunctor_add<c10::BFloat16>, std::array<char*, 3ul>)",
                "elementwise add<BFloat16>",
            ),
            (
                "void at::native::vectorized_elementwise_kernel<4, at::native::(anonymous namespace)::launch_clamp_scalar(at::TensorIteratorBase&, c10::Scalar, c10::Scalar, at::native::detail::ClampLimits)::{lambda()#1}::operator()() const::{lambda()#7}::operator()() const::{lambda(float)#1}, at::detail::Array<char*, 2> >(int, at::native::(anonymous namespace)::launch_clamp_scalar(at::TensorIteratorBase&, c10::Scalar, c10::Scalar, at::native::detail::ClampLimits)::{lambda()#1}::operator()() const::{lambda()#7}::operator()() const::{lambda(float)#1}, at::detail::Array<char*, 2>)",
                "elementwise clamp_scalar<float>",
            ),
            (
                "void at::native::vectorized_elementwise_kernel<4, at::native::BinaryFunctor<float, float, float, at::native::(anonymous namespace)::threshold_kernel_impl<float>(at::TensorIteratorBase&, float, float)::{lambda(float, float)#1}>, at::detail::Array<char*, 3> >(int, at::native::BinaryFunctor<float, float, float, at::native::(anonymous namespace)::threshold_kernel_impl<float>(at::TensorIteratorBase&, float, float)::{lambda(float, float)#1}>, at::detail::Array<char*, 3>)",
                "elementwise threshold<float>",
            ),
            (
                "void at::native::elementwise_kernel<128, 2, at::native::gpu_kernel_impl_nocast<at::native::BUnaryFunctor<float, float, float, at::native::binary_internal::MulFunctor<float> > >(at::TensorIteratorBase&, at::native::BUnaryFunctor<float, float, float, at::native::binary_internal::MulFunctor<float> > const&)::{lambda(int)#1}>(int, at::native::gpu_kernel_impl_nocast<at::native::BUnaryFunctor<float, float, float, at::native::binary_internal::MulFunctor<float> > >(at::TensorIteratorBase&, at::native::BUnaryFunctor<float, float, float, at::native::binary_internal::MulFunctor<float> > const&)::{lambda(int)#1})",
                "elementwise Mul<float>",
            ),
            (
                "void at::native::reduce_kernel<512, 1, at::native::ReduceOp<float, at::native::func_wrapper_t<float, at::native::sum_functor<float, float, float>::operator()(at::TensorIterator&)::{lambda(float, float)#1}>, unsigned int, float, 4> >(at::native::ReduceOp<float, at::native::func_wrapper_t<float, at::native::sum_functor<float, float, float>::operator()(at::TensorIterator&)::{lambda(float, float)#1}>, unsigned int, float, 4>)",
                "reduce sum<float>",
            ),
            (
                "void at::native::reduce_kernel<512, 1, at::native::ReduceOp<float, at::native::MeanOps<float, float, float, float>, unsigned int, float, 4> >(at::native::ReduceOp<float, at::native::MeanOps<float, float, float, float>, unsigned int, float, 4>)",
                "reduce Mean<float>",
            ),
            (
                "void at::native::vectorized_elementwise_kernel<(int)4, void at::native::<unnamed>::pow_tensor_scalar_kernel_impl<float, float>(at::TensorIteratorBase &, T2)::[lambda(float) (instance 1)], std::array<char *, (unsigned long)2>>(int, T2, T3)",
                "elementwise pow_tensor_scalar<float>",
            ),
            (
                "void at::native::vectorized_elementwise_kernel<(int)4, at::native::rsqrt_kernel_cuda(at::TensorIteratorBase &)::[lambda() (instance 2)]::operator ()() const::[lambda() (instance 2)]::operator ()() const::[lambda(float) (instance 1)], std::array<char *, (unsigned long)2>>(int, T2, T3)",
                "elementwise rsqrt<float>",
            ),
            (
                "void at::native::(anonymous namespace)::multi_tensor_apply_kernel<at::native::(anonymous namespace)::TensorListMetadata<1>, at::native::(anonymous namespace)::BinaryOpScalarFunctor<float, 1, 1, 0>, std::multiplies<float>, float>(at::native::(anonymous namespace)::TensorListMetadata<1>, at::native::(anonymous namespace)::BinaryOpScalarFunctor<float, 1, 1, 0>, std::multiplies<float>, float)",
                "multi_tensor_apply BinaryOpScalar<float>",
            ),
            (
                "void at::native::vectorized_elementwise_kernel<4, at::native::GeluCUDAKernelImpl(at::TensorIteratorBase&, at::native::GeluType)::{lambda()#2}::operator()() const::{lambda()#4}::operator()() const::{lambda(c10::BFloat16)#1}, std::array<char*, 2ul> >(int, at::native::GeluCUDAKernelImpl(at::TensorIteratorBase&, at::native::GeluType)::{lambda()#2}::operator()() const::{lambda()#4}::operator()() const::{lambda(c10::BFloat16)#1}, std::array<char*, 2ul>)",
                "elementwise Gelu<BFloat16>",
            ),
            (
                "void cutlass::Kernel2<cutlass_80_tensorop_bf16_s16816gemm_relu_bf16_64x64_64x6_tn_align8>(cutlass_80_tensorop_bf16_s16816gemm_relu_bf16_64x64_64x6_tn_align8::Params)",
                "cutlass_s16816gemm_64x64",
            ),
            (
                "void cutlass__5x_cudnn::Kernel<cutlass_tensorop_bf16_s16816fprop_optimized_bf16_256x64_32x4_nhwc_align8>(cutlass_tensorop_bf16_s16816fprop_optimized_bf16_256x64_32x4_nhwc_align8::Params)",
                "cutlass_s16816fprop_256x64",
            ),
            (
                "std::enable_if<!(false), void>::type internal::gemvx::kernel<int, int, __nv_bfloat16, __nv_bfloat16, __nv_bfloat16, float, false, true, true, false, 7, false, cublasGemvParamsEx<int, cublasGemvTensorStridedBatched<__nv_bfloat16 const>, cublasGemvTensorStridedBatched<__nv_bfloat16 const>, cublasGemvTensorStridedBatched<__nv_bfloat16>, float> >(cublasGemvParamsEx<int, cublasGemvTensorStridedBatched<__nv_bfloat16 const>, cublasGemvTensorStridedBatched<__nv_bfloat16 const>, cublasGemvTensorStridedBatched<__nv_bfloat16>, float>)",
                "gemvx::kernel",
            ),
            (
                "sm80_xmma_wgrad_implicit_gemm_indexed_tf32f32_tf32f32_f32_nhwckrsc_nhwc_tilesize128x128x16_stage4_warpsize2x2x1_g1_tensor16x8x8_execute_split_k_kernel_cudnn_train",
                "xmma_wgrad_gemm_128x128x16_split_cudnn",
            ),
            (
                "volta_sgemm_64x32_sliced1x4_nn",
                "volta_sgemm_64x32_sliced1x4_nn",
            ),
            (
                "ncclKernel_AllReduce_RING_LL_Sum_float(ncclDevComm*, unsigned long, ncclWork*)",
                "ncclKernel_AllReduce_RING_LL_Sum_float",
            ),
            (
                "void (anonymous namespace)::softmax_warp_forward<float, float, float, 10, true, false>(float*, float const*, int, int, int, bool const*, int, bool)",
                "softmax_warp_forward",
            ),
            ("Outer<int>::inner(float*)", "inner"),
            ("größe é<int>(float)", "é"),
            ("cudaStreamSynchronize", "cudaStreamSynchronize"),
        ];
        for (full, expected) in cases {
            assert_eq!(short(full), expected, "{full}");
        }
    }

    #[test]
    fn names_of_a_table_are_told_apart_by_the_words_that_differ() {
        let fulls = [
            "void cudnn::bn_bw_1C11_kernel_new<float, float, float2, 128, true, 1>(float, float, float, float, cudnnTensorStruct, float const*, cudnnTensorStruct, float const*, cudnnTensorStruct, float*, float const*, float*, float*, float const*, float const*, float)",
            "void cudnn::bn_bw_1C11_kernel_new<float, float, float2, 32, true, 1>(float, float, float, float, cudnnTensorStruct, float const*, cudnnTensorStruct, float const*, cudnnTensorStruct, float*, float const*, float*, float*, float const*, float const*, float)",
            "void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<float>, at::detail::Array<char*, 3> >(int, at::native::CUDAFunctor_add<float>, at::detail::Array<char*, 3>)",
            "void at::native::reduce_kernel<512, 1, at::native::ReduceOp<float, at::native::func_wrapper_t<float, at::native::sum_functor<float, float, float>::operator()(at::TensorIterator&)::{lambda(float, float)#1}>, unsigned int, float, 4> >(at::native::ReduceOp<float, at::native::func_wrapper_t<float, at::native::sum_functor<float, float, float>::operator()(at::TensorIterator&)::{lambda(float, float)#1}>, unsigned int, float, 4>)",
            "void at::native::reduce_kernel<128, 4, at::native::ReduceOp<float, at::native::func_wrapper_t<float, at::native::sum_functor<float, float, float>::operator()(at::TensorIterator&)::{lambda(float, float)#1}>, unsigned int, float, 4> >(at::native::ReduceOp<float, at::native::func_wrapper_t<float, at::native::sum_functor<float, float, float>::operator()(at::TensorIterator&)::{lambda(float, float)#1}>, unsigned int, float, 4>)",
            "sm80_xmma_fprop_implicit_gemm_indexed_tf32f32_tf32f32_f32_nhwckrsc_nchw_tilesize128x128x16_stage4_warpsize2x2x1_g1_tensor16x8x8_alignc4_execute_kernel_cudnn_infer",
            "sm80_xmma_fprop_implicit_gemm_indexed_tf32f32_tf32f32_f32_nhwckrsc_nchw_tilesize128x128x16_stage4_warpsize2x2x1_g1_tensor16x8x8_execute_kernel_cudnn_infer",
        ];
        let expected = [
            "bn_bw_1C11_kernel_new 128",
            "bn_bw_1C11_kernel_new 32",
            "elementwise add<float>",
            "reduce sum<float> 512",
            "reduce sum<float> 128",
            "xmma_fprop_gemm_128x128x16_cudnn alignc4",
            "xmma_fprop_gemm_128x128x16_cudnn",
        ];
        assert_eq!(unique(&fulls), expected);
        // Both have both words: where they stand tells them apart.
        let flags = [
            "void split<true, false, true>(float*)",
            "void split<true, false, false>(float*)",
        ];
        assert_eq!(unique(&flags), ["split true", "split false"]);
        // What no word tells apart keeps its whole name; what is the same keeps the same.
        assert_eq!(unique(&["k(int)", "k(float)"]), ["k(int)", "k(float)"]);
        assert_eq!(unique(&["a::k(int)", "a::k(int)"]), ["k", "k"]);
    }

    proptest::proptest! {
        #[test]
        fn any_text_has_a_short_name(text in "[a-z<>(){}:,\\[\\] é*&-]{0,40}(operator\\(\\)|::|lambda)?[<>(){}:a-z ]{0,20}") {
            let name = short(&text);
            proptest::prop_assert!(name.is_empty() == text.is_empty(), "{text:?} -> {name:?}");
            proptest::prop_assert_eq!(unique(&[&text, "k(int)"]).len(), 2);
        }
    }
}
